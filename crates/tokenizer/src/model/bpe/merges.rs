//! The ranked pairs of `tokenizer.ggml.merges`.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::alphabet;
use super::pre::Spelling;
use crate::error::Error;
use crate::model::merge::{Join, NO_TOKEN};
use crate::model::spaces::to_spaces;
use crate::pieces::{Index, Pieces};
use crate::vocabulary::Vocabulary;

const MERGES: &str = "tokenizer.ggml.merges";

/// Which pairs of tokens become one token, and in which order.
pub(super) struct Merges {
    pairs: HashTable<Pair>,
    hasher: DefaultHashBuilder,
}

struct Pair {
    ids: [u32; 2],
    join: Join,
}

impl Merges {
    /// # Errors
    /// If they are missing, or one names a token that does not exist.
    pub fn read(
        vocabulary: &Vocabulary<'_>,
        pieces: &Pieces,
        index: &Index,
        spelling: Spelling,
    ) -> Result<Self, Error> {
        let texts = vocabulary.strings(MERGES)?;
        // No more than the file has room for: each takes four bytes at least.
        let count = vocabulary.metadata.array(MERGES).map_or(0, gguf::Array::len) as usize;
        let mut merges =
            Self { pairs: HashTable::with_capacity(count), hasher: DefaultHashBuilder::default() };
        let mut bytes = Vec::new();
        for (rank, text) in (0..).zip(texts) {
            let fault = |what: &str| {
                let text = String::from_utf8_lossy(text);
                let shown: String = text.chars().take(80).collect();
                Error::vocabulary(MERGES, format!("merge {rank}, {shown:?}, {what}"))
            };
            // The first part can be a space itself.
            let space = text.iter().skip(1).position(|&byte| byte == b' ');
            let Some((left, right)) = space.map(|i| (&text[..i + 1], &text[i + 2..])) else {
                return Err(fault("is not a pair of tokens with a space between"));
            };
            bytes.clear();
            spelling.append(left, &mut bytes);
            let middle = bytes.len();
            spelling.append(right, &mut bytes);
            let find = |bytes: &[u8]| index.find(pieces, bytes);
            let ids = (find(&bytes[..middle]), find(&bytes[middle..]), find(&bytes));
            let (Some(left), Some(right), Some(id)) = ids else {
                return Err(fault("names a token that is not in the vocabulary"));
            };
            merges.insert([left, right], Join { rank, id });
        }
        Ok(merges)
    }

    /// The first of equal pairs counts.
    fn insert(&mut self, ids: [u32; 2], join: Join) {
        let hash = |pair: &Pair| self.hasher.hash_one(pair.ids);
        let same = |pair: &Pair| pair.ids == ids;
        let pair = Pair { ids, join };
        self.pairs.entry(hash(&pair), same, hash).or_insert(pair);
    }

    /// What two tokens become, if they do.
    #[inline]
    pub fn find(&self, left: u32, right: u32) -> Option<Join> {
        if left == NO_TOKEN || right == NO_TOKEN {
            return None;
        }
        let ids = [left, right];
        let pair = self.pairs.find(self.hasher.hash_one(ids), |pair| pair.ids == ids)?;
        Some(pair.join)
    }
}

impl Spelling {
    /// Appends what a part of a merge stands for.
    fn append(self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Bytes => {
                alphabet::decode(text, out);
            }
            Self::Characters { visible_spaces: true } => to_spaces(text, out),
            Self::Characters { visible_spaces: false } => out.extend_from_slice(text),
        }
    }
}
