//! The ranked pairs of `tokenizer.ggml.merges`.

use std::hash::BuildHasher;

use gguf::Error;
use hashbrown::{DefaultHashBuilder, HashTable};
use rayon::prelude::*;

use super::alphabet;
use super::pre::Spelling;
use crate::error::invalid;
use crate::model::merge::{Join, NO_TOKEN};
use crate::model::spaces::to_spaces;
use crate::token_table::{Index, TokenTable};
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
        pieces: &TokenTable,
        index: &Index,
        spelling: Spelling,
    ) -> Result<Self, Error> {
        let texts: Vec<&[u8]> = vocabulary.strings(MERGES)?.collect();
        // Three look-ups for each are nearly all of the time that loading takes.
        let resolve = |bytes: &mut Vec<u8>, text: &&[u8]| {
            // The first part can be a space itself.
            let space = text.iter().skip(1).position(|&byte| byte == b' ');
            let (left, right) = space
                .map(|i| (&text[..i + 1], &text[i + 2..]))
                .ok_or("is not a pair of tokens with a space between")?;
            bytes.clear();
            spelling.append(left, bytes);
            let middle = bytes.len();
            spelling.append(right, bytes);
            let find = |bytes: &[u8]| {
                index.find(pieces, bytes).ok_or("names a token that is not in the vocabulary")
            };
            Ok(([find(&bytes[..middle])?, find(&bytes[middle..])?], find(bytes)?))
        };
        let resolved: Vec<Result<_, &str>> = texts.par_iter().map_init(Vec::new, resolve).collect();
        let mut merges = Self {
            pairs: HashTable::with_capacity(texts.len()),
            hasher: DefaultHashBuilder::default(),
        };
        for (rank, (resolved, text)) in (0..).zip(resolved.into_iter().zip(texts)) {
            let (ids, id) = resolved.map_err(|fault| {
                let text = String::from_utf8_lossy(text);
                let shown: String = text.chars().take(80).collect();
                invalid(MERGES, format!("merge {rank}, {shown:?}, {fault}"))
            })?;
            merges.insert(ids, Join { rank, id });
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
