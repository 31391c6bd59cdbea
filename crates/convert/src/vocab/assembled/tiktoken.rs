//! tiktoken files: each line has the bytes of a token in base64, and its rank, which is its id.
//!
//! The files have no merges. They follow from the ranks: a token is the merge of the two pieces that remain after all
//! merges of lower ranks.

use std::collections::HashMap;

use gguf::Error;
use gguf_models::pre_tokenizer::CL100K_DIGITS;
use serde_json::{Map, Value, json};

use super::{Assembled, added_tokens};
use crate::vocab::bpe;
use crate::vocab::files::{Files, SENTENCEPIECE};
use crate::vocab::tiktoken_line::{entry, is_tiktoken};
use crate::vocab::token::MAX_TOKENS;

/// Tokenizer whose special tokens are only in the model's code.
struct Known {
    name: &'static str,
    /// Special tokens behind the ranked tokens, in this order.
    special: &'static [&'static str],
    /// Number of additional numbered special tokens.
    extra: u64,
    /// Regex of the pre-tokenizer, if it is known.
    has_pre_tokenizer: bool,
    /// Fields of `tokenizer_config.json` with the tokens of these roles.
    roles: &'static [(&'static str, &'static str)],
}

/// Qwen 1 and Hunyuan.
const KNOWN: [Known; 2] = [
    Known {
        name: "qwen.tiktoken",
        special: &["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        extra: 205,
        has_pre_tokenizer: true,
        roles: &[
            ("bos_token", "<|endoftext|>"),
            ("eos_token", "<|endoftext|>"),
            ("unk_token", "<|endoftext|>"),
        ],
    },
    Known {
        name: "hy.tiktoken",
        special: &["<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>"],
        extra: 205,
        has_pre_tokenizer: false,
        roles: &[],
    },
];

/// Maximum length of a token. Finding its merge takes quadratic time.
const MAX_LEN: usize = 1024;

/// Returns the tiktoken file of a directory, which has one of several names.
pub(super) fn find(files: &Files) -> Result<Option<String>, Error> {
    let folder = files.folder();
    let others = ["tiktoken.model", SENTENCEPIECE].map(str::to_owned);
    let mut names = folder.with_extension("", "tiktoken")?.into_iter().chain(others);
    Ok(names.find(|name| is_tiktoken(folder, name)))
}

pub(super) fn assemble(
    files: &Files,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<Assembled, Error> {
    let (path, text) = (files.path(name), files.text(name)?);
    let mut ranks: HashMap<Vec<u8>, u64> = HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let parsed =
            entry(line).filter(|(token, rank)| token.len() <= MAX_LEN && *rank < MAX_TOKENS);
        let (token, rank) = parsed.ok_or_else(|| {
            let what = format!("line {} is not a token in base64 with its rank", number + 1);
            Error::input("vocabulary-damaged", &path, what, "download the file again")
        })?;
        ranks.insert(token, rank);
    }
    let mut tokens: Vec<(&Vec<u8>, u64)> =
        ranks.iter().map(|(token, &rank)| (token, rank)).collect();
    tokens.sort_unstable_by_key(|&(token, rank)| (rank, token));

    let mut vocab = Map::new();
    let mut merges = Vec::new();
    let mut odd = 0u64;
    for &(token, rank) in &tokens {
        vocab.insert(bpe::spell(token), rank.into());
        match &pieces(&ranks, token, rank)[..] {
            [_] => {}
            [left, right] => merges.push(format!("{} {}", bpe::spell(left), bpe::spell(right))),
            _ => odd += 1,
        }
    }
    if odd > 0 {
        notes.push(format!("{odd} tokens are not merges of two others: no text contains them"));
    }

    let known = KNOWN.iter().find(|known| known.name == name);
    let added = match known {
        Some(known) => known.added(tokens.last().map_or(0, |&(_, rank)| rank + 1)),
        None => added_tokens(files, &vocab, &[])?,
    };
    let has_pre_tokenizer = known.is_some_and(|known| known.has_pre_tokenizer);
    let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "use_regex": false });
    let cut = json!({ "type": "Split", "pattern": { "Regex": CL100K_DIGITS },
        "behavior": "Isolated", "invert": false });
    let pre_tokenizer = match has_pre_tokenizer {
        true => json!({ "type": "Sequence", "pretokenizers": [cut, bytes] }),
        false => bytes,
    };
    let tokenizer = json!({
        "added_tokens": added,
        "pre_tokenizer": pre_tokenizer,
        "decoder": { "type": "ByteLevel" },
        "model": { "type": "BPE", "vocab": vocab, "merges": merges },
    });
    let roles = known.map_or(vec![], |known| known.roles.to_vec());
    Ok(Assembled { tokenizer, path, has_pre_tokenizer, roles })
}

impl Known {
    /// Returns the special tokens, with ids from `first` on.
    fn added(&self, first: u64) -> Vec<Value> {
        let extra = (0..self.extra).map(|number| format!("<|extra_{number}|>"));
        let texts = self.special.iter().map(|text| (*text).to_owned()).chain(extra);
        let entry =
            |(text, id)| json!({ "id": id, "content": text, "special": true, "normalized": false });
        texts.zip(first..).map(entry).collect()
    }
}

/// Returns the pieces of a token after all merges with lower ranks than its own.
fn pieces<'t>(ranks: &HashMap<Vec<u8>, u64>, token: &'t [u8], rank: u64) -> Vec<&'t [u8]> {
    // Ends of pieces.
    let mut ends: Vec<usize> = (1..=token.len()).collect();
    loop {
        let best = (0..ends.len().saturating_sub(1))
            .filter_map(|i| {
                let start = if i == 0 { 0 } else { ends[i - 1] };
                let merged = ranks.get(&token[start..ends[i + 1]])?;
                (*merged < rank).then_some((*merged, i))
            })
            .min();
        match best {
            Some((_, i)) => drop(ends.remove(i)),
            None => break,
        }
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, &end)| &token[start..end]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_follow_from_ranks() {
        let ranks: HashMap<Vec<u8>, u64> = [&b"a"[..], b"b", b"c", b"ab", b"bc", b"abc", b"abcab"]
            .iter()
            .zip(0..)
            .map(|(token, rank)| (token.to_vec(), rank))
            .collect();
        assert_eq!(pieces(&ranks, b"ab", 3), [b"a", b"b"]);
        assert_eq!(pieces(&ranks, b"abc", 5), [&b"ab"[..], b"c"]);
        assert_eq!(pieces(&ranks, b"abcab", 6), [&b"abc"[..], b"ab"]);
        assert_eq!(pieces(&ranks, b"a", 0), [b"a"]);
    }

    #[test]
    fn lines_hold_base64_and_rank() {
        assert_eq!(entry("IQ== 0"), Some((b"!".to_vec(), 0)));
        for line in ["", "IQ==", "IQ== x", "!! 3", " 3"] {
            assert_eq!(entry(line), None, "{line}");
        }
    }
}
