//! Merges of a `tokenizer.json`, best first.
//!
//! Loaders reject a file if a merge names a token that the model's vocabulary lacks, so this module also determines
//! which tokens the vocabulary must list.

use std::collections::HashMap;

use gguf::{Array, Metadata};
use serde_json::{Value, json};

use super::{Token, is_padding};

/// Merges whose parts and results are tokens.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Merges<'t> {
    pairs: Vec<(&'t str, &'t str)>,
    /// Number of tokens, from the first on, that the model's vocabulary must list for the merges.
    pub reach: usize,
    /// Number of other merges, which never apply.
    pub left_out: usize,
}

impl<'t> Merges<'t> {
    /// Merges in the order in which they come.
    pub fn new(tokens: &[Token], merges: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let mut ids: HashMap<&str, usize> = HashMap::new();
        for (id, token) in tokens.iter().enumerate().filter(|(id, token)| !is_padding(*id, token)) {
            ids.entry(token.text).or_insert(id);
        }
        let mut out = Self::default();
        let mut result = String::new();
        for (left, right) in merges {
            result.clear();
            result.push_str(left);
            result.push_str(right);
            match [left, right, &result].map(|text| ids.get(text)) {
                [Some(&left_id), Some(&right_id), Some(&id)] => {
                    out.reach = out.reach.max(left_id.max(right_id).max(id) + 1);
                    out.pairs.push((left, right));
                }
                _ => out.left_out += 1,
            }
        }
        out
    }

    /// Reads the merges of a GGUF.
    pub fn read(metadata: &'t Metadata, tokens: &[Token]) -> Self {
        let merges = metadata.array("tokenizer.ggml.merges").and_then(Array::strings);
        let mut malformed = 0;
        let pairs = merges.into_iter().flatten().filter_map(|merge| {
            let pair = std::str::from_utf8(merge).ok().and_then(parts);
            malformed += usize::from(pair.is_none());
            pair
        });
        let out = Self::new(tokens, pairs.collect::<Vec<_>>());
        Self { left_out: out.left_out + malformed, ..out }
    }

    /// Returns the list: strings, which all loaders read, or pairs if a string is ambiguous.
    pub fn list(&self) -> Value {
        let is_plain = |(left, right): &(&str, &str)| {
            // Loaders skip a first merge that looks like the version line of a `merges.txt`.
            !left.contains(' ') && !right.contains(' ') && !left.starts_with("#version")
        };
        match self.pairs.iter().all(is_plain) {
            true => self.pairs.iter().map(|(left, right)| format!("{left} {right}")).collect(),
            false => self.pairs.iter().map(|(left, right)| json!([left, right])).collect(),
        }
    }
}

/// Splits a merge into its parts. The first may start with a space.
fn parts(merge: &str) -> Option<(&str, &str)> {
    let first = merge.chars().next()?.len_utf8();
    let space = first + merge.get(first..)?.find(' ')?;
    let (left, right) = (merge.get(..space)?, merge.get(space + 1..)?);
    (!right.is_empty()).then_some((left, right))
}

#[cfg(test)]
mod tests {
    use gguf_models::token::TokenType;

    use super::*;

    fn tokens() -> Vec<Token<'static>> {
        let kinds = [
            ("a", TokenType::Normal),
            ("b", TokenType::Normal),
            ("<s>", TokenType::Control),
            ("ab", TokenType::Control),
        ];
        let last = [
            ("[PAD4]", TokenType::Unused),
            (" a", TokenType::Normal),
            ("#versiona", TokenType::Normal),
            ("#version", TokenType::Normal),
        ];
        let token = |&(text, kind): &_| Token { text, score: 0.0, kind };
        kinds.iter().chain(&last).map(token).collect()
    }

    #[test]
    fn merges_reach_to_the_last_token_that_they_name() {
        let merges = Merges::new(&tokens(), [("a", "b"), ("b", "a"), ("[PAD4", "]")]);
        assert_eq!(merges, Merges { pairs: vec![("a", "b")], reach: 4, left_out: 2 });
        assert_eq!(merges.list(), json!(["a b"]));
    }

    #[test]
    fn what_a_text_would_not_keep_is_a_list_of_pairs() {
        let spaced = Merges::new(&tokens(), [("a", "b"), (" ", "a")]);
        assert_eq!((spaced.list(), spaced.left_out), (json!(["a b"]), 1));
        let version = Merges::new(&tokens(), [("a", "b"), ("#version", "a")]);
        assert_eq!(version.list(), json!([["a", "b"], ["#version", "a"]]));
    }

    #[test]
    fn a_merge_is_cut_behind_its_first_character() {
        assert_eq!(parts("a b"), Some(("a", "b")));
        assert_eq!(parts("  a"), Some((" ", "a")));
        assert_eq!(parts("a b c"), Some(("a", "b c")));
        for malformed in ["", " ", "ab", "a ", "\u{2581}"] {
            assert_eq!(parts(malformed), None, "{malformed:?}");
        }
    }
}
