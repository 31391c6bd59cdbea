//! Merge table of `tokenizer.ggml.merges`.

use std::hash::BuildHasher;

use gguf::Error;
use hashbrown::{DefaultHashBuilder, HashTable};
use rayon::prelude::*;

use super::alphabet;
use super::pre::Alphabet;
use crate::error::invalid;
use crate::model::merge::{MergeRule, NO_TOKEN};
use crate::model::spaces::to_spaces;
use crate::token_table::{Index, TokenTable};
use crate::vocabulary::Vocabulary;

const MERGES: &str = "tokenizer.ggml.merges";

/// Pairs of tokens that merge, with their ranks.
pub(super) struct Merges {
    pairs: HashTable<Pair>,
    hasher: DefaultHashBuilder,
}

struct Pair {
    ids: [u32; 2],
    rule: MergeRule,
}

impl Merges {
    /// # Errors
    /// If the merges are missing, or one names a token that does not exist.
    pub fn read(
        vocabulary: &Vocabulary<'_>,
        pieces: &TokenTable,
        index: &Index,
        alphabet_kind: Alphabet,
    ) -> Result<Self, Error> {
        let texts: Vec<&[u8]> = vocabulary.strings(MERGES)?.collect();
        // Three lookups per merge are nearly all of the loading time.
        let resolve = |bytes: &mut Vec<u8>, text: &&[u8]| {
            // The left token can be a space itself.
            let space = text.iter().skip(1).position(|&byte| byte == b' ');
            let (left, right) = space
                .map(|i| (&text[..i + 1], &text[i + 2..]))
                .ok_or("is not a pair of tokens separated by a space")?;
            bytes.clear();
            alphabet_kind.append(left, bytes);
            let middle = bytes.len();
            alphabet_kind.append(right, bytes);
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
            merges.insert(ids, MergeRule { rank, id });
        }
        Ok(merges)
    }

    /// Inserts a pair; the first of equal pairs counts.
    fn insert(&mut self, ids: [u32; 2], rule: MergeRule) {
        let hash = |pair: &Pair| self.hasher.hash_one(pair.ids);
        let same = |pair: &Pair| pair.ids == ids;
        let pair = Pair { ids, rule };
        self.pairs.entry(hash(&pair), same, hash).or_insert(pair);
    }

    /// Returns the result of merging two tokens, if there is a rule.
    #[inline]
    pub fn find(&self, left: u32, right: u32) -> Option<MergeRule> {
        if left == NO_TOKEN || right == NO_TOKEN {
            return None;
        }
        let ids = [left, right];
        let pair = self.pairs.find(self.hasher.hash_one(ids), |pair| pair.ids == ids)?;
        Some(pair.rule)
    }
}

impl Alphabet {
    /// Decodes a part of a merge.
    fn append(self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::ByteLevel => {
                alphabet::decode(text, out);
            }
            Self::Characters { visible_spaces: true } => to_spaces(text, out),
            Self::Characters { visible_spaces: false } => out.extend_from_slice(text),
        }
    }
}
