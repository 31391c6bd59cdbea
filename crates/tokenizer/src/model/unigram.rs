//! Unigram, the tokenizer of T5: of all segmentations of a text, the one with the largest sum of
//! scores.
//!
//! Ties, unknown characters and white space follow SentencePiece.

use gguf::Error;
use gguf_models::token::{TokenType, byte_of_token};

use crate::model::Model;
use crate::model::charsmap::{CHARSMAP, Charsmap};
use crate::model::merge::char_len;
use crate::options::{Compat, TokenizerOptions};
use crate::token_table::TokenTable;
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;

/// Visible space in tokens: U+2581.
const SPACE: &[u8] = "\u{2581}".as_bytes();

/// Score of an unknown character, relative to the lowest score.
const UNKNOWN_PENALTY: f32 = 10.0;

/// Id of an unknown character.
const NONE: u32 = u32::MAX;

/// Vocabulary as a trie, with scores.
pub(crate) struct Unigram {
    charsmap: Option<Charsmap>,
    spaces: Spaces,
    trie: Trie,
    scores: Vec<f32>,
    lowest: f32,
    highest: f32,
    types: Vec<TokenType>,
    unknown: Option<u32>,
    /// Byte-fallback tokens, if the vocabulary has all of them.
    bytes: Option<Box<[u32; 256]>>,
    texts: TokenTable,
    compat: Compat,
}

/// Handling of white space.
struct Spaces {
    /// Add a space before or after the text.
    added: Option<Side>,
    /// Strip spaces at the ends and collapse runs of spaces.
    merged: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// BestPath segmentation of the text up to some position.
#[derive(Clone, Copy)]
struct BestPath {
    score: f64,
    /// Last token; `NONE` for an unknown character.
    id: u32,
    /// Length of its text; 0 if no token ends here.
    len: u32,
}

/// Initial state of a position.
const UNREACHED: BestPath = BestPath { score: 0.0, id: NONE, len: 0 };

impl Unigram {
    /// Reads `t5`, and `replit`, which keeps white space.
    ///
    /// # Errors
    /// If scores are missing or fewer than the tokens, the charsmap is corrupt, or a token exceeds
    /// the maximum length.
    pub fn read(vocabulary: &Vocabulary<'_>, options: TokenizerOptions) -> Result<Self, Error> {
        let scores = vocabulary.scores()?;
        let of_type = |kind| (0..).zip(&vocabulary.types).filter(move |(_, k)| **k == kind);
        let normal = || of_type(TokenType::Normal).filter_map(|(id, _)| scores.get(id).copied());
        let matched =
            |kind| matches!(kind, TokenType::Normal | TokenType::UserDefined | TokenType::Unused);
        let tokens = (0..).zip(vocabulary.tokens.iter().zip(&vocabulary.types));
        let tokens = tokens
            // SentencePiece skips unused tokens; llama.cpp matches them too.
            .filter(|(_, (_, kind))| matched(**kind))
            .filter(|(_, (_, kind))| {
                **kind != TokenType::Unused || options.compat == Compat::LlamaCpp
            })
            .map(|(id, (token, _))| (*token, id));
        let charsmap = vocabulary.metadata.array(CHARSMAP).filter(|array| !array.is_empty());
        let after = vocabulary.flag("treat_whitespace_as_suffix", false);
        Ok(Self {
            charsmap: charsmap.map(Charsmap::read).transpose()?,
            spaces: Spaces {
                added: vocabulary.flag("add_space_prefix", false).then_some(if after {
                    Side::After
                } else {
                    Side::Before
                }),
                merged: vocabulary.flag("remove_extra_whitespaces", false),
            },
            trie: Trie::new(tokens)?,
            lowest: normal().reduce(f32::min).unwrap_or_default(),
            highest: normal().reduce(f32::max).unwrap_or_default(),
            types: vocabulary.types.clone(),
            unknown: vocabulary.special_id("unk", Some(2))?,
            bytes: byte_tokens(vocabulary).filter(|_| options.compat == Compat::Original),
            texts: vocabulary.tokens.iter().collect(),
            compat: options.compat,
            scores,
        })
    }

    /// Normalizes a text. Characters that the charsmap does not replace stay.
    fn normalize(&self, text: &str) -> Vec<u8> {
        let mut normal = Vec::with_capacity(text.len() + text.len() / 4 + SPACE.len());
        let mut parts = Parts { charsmap: self.charsmap.as_ref(), rest: text }.peekable();
        if self.spaces.merged {
            while parts.next_if(|part| *part == b" ").is_some() {}
        }
        if parts.peek().is_none() {
            return normal;
        }
        if self.spaces.added == Some(Side::Before) {
            normal.extend_from_slice(SPACE);
        }
        let mut after_space = self.spaces.merged;
        for part in parts {
            let spaces = part.iter().take_while(|byte| **byte == b' ').count();
            let stripped = if after_space { part.get(spaces..).unwrap_or_default() } else { part };
            for byte in stripped {
                if *byte == b' ' {
                    normal.extend_from_slice(SPACE);
                } else {
                    normal.push(*byte);
                }
            }
            if self.spaces.merged && !stripped.is_empty() {
                after_space = stripped.ends_with(b" ");
            }
        }
        // SentencePiece also strips U+2581 characters of the text itself.
        let is_original = self.compat == Compat::Original;
        while self.spaces.merged && normal.ends_with(SPACE) && (is_original || after_space) {
            normal.truncate(normal.len() - SPACE.len());
            after_space = false;
        }
        if self.spaces.added == Some(Side::After) {
            normal.extend_from_slice(SPACE);
        }
        normal
    }

    /// Computes the best segmentation of `text` up to each position, from the last one of `best` to
    /// the first that no token spans. Later text cannot change it, so memory does not grow with the
    /// text.
    fn best(&self, text: &[u8], best: &mut Vec<BestPath>) {
        let mut position = 0;
        while let Some(rest) = text.get(position..).filter(|rest| !rest.is_empty()) {
            let so_far = best[position].score;
            let char_len = char_len(rest);
            let mut is_known = false;
            let mut relax = |len: usize, id, score: f64| {
                if best.len() <= position + len {
                    best.resize(position + len + 1, UNREACHED);
                }
                let end = &mut best[position + len];
                let score = self.rounded(so_far + score);
                if end.len == 0 || score > end.score {
                    *end = BestPath { score, id, len: len as u32 };
                }
            };
            for (len, id) in self.trie.prefixes(rest) {
                relax(len, id, self.score(id, len));
                is_known |= len == char_len;
            }
            if !is_known {
                relax(char_len, NONE, f64::from(self.lowest - UNKNOWN_PENALTY));
            }
            position += char_len;
            if position + 1 == best.len() {
                return;
            }
        }
    }

    /// Appends the ids of the best segmentation of `text`; `after_unknown`: an unknown character
    /// precedes it.
    fn append(&self, text: &[u8], best: &[BestPath], after_unknown: bool, out: &mut Vec<u32>) {
        let before = out.len();
        let mut end = text.len();
        // Whether the token on the right is unknown.
        let mut is_unknown = false;
        // Backwards, because each position stores the token before it.
        while let Some(BestPath { id, len, .. }) = best.get(end).filter(|best| best.len > 0) {
            let start = end.saturating_sub(*len as usize);
            match &self.bytes {
                _ if *id != NONE => out.push(*id),
                Some(bytes) => {
                    let char = text.get(start..end).unwrap_or_default();
                    out.extend(char.iter().rev().map(|byte| bytes[usize::from(*byte)]));
                }
                // Consecutive unknown characters are one token.
                None if !is_unknown => out.extend(self.unknown),
                None => {}
            }
            is_unknown = *id == NONE;
            end = start;
        }
        if is_unknown && after_unknown && self.bytes.is_none() && self.unknown.is_some() {
            out.pop();
        }
        out.get_mut(before..).unwrap_or_default().reverse();
    }

    /// Returns the score of a token; user-defined tokens win over all others.
    fn score(&self, id: u32, len: usize) -> f64 {
        let is_defined = self.types.get(id as usize) == Some(&TokenType::UserDefined);
        match self.compat {
            Compat::Original if is_defined => f64::from(len as f32 * self.highest) - 0.1,
            Compat::LlamaCpp if is_defined => 0.0,
            _ => self.scores.get(id as usize).copied().unwrap_or_default().into(),
        }
    }

    /// Rounds a sum of scores: SentencePiece keeps sums in 32 bits, llama.cpp in 64, which decides
    /// ties in long texts.
    fn rounded(&self, score: f64) -> f64 {
        match self.compat {
            Compat::Original => f64::from(score as f32),
            Compat::LlamaCpp => score,
        }
    }
}

impl Model for Unigram {
    fn encode(&self, text: &str, _at_start: bool, out: &mut Vec<u32>) {
        let text = self.normalize(text);
        let mut text = &text[..];
        let mut best = vec![UNREACHED];
        let mut after_unknown = false;
        while !text.is_empty() {
            self.best(text, &mut best);
            let (part, rest) = text.split_at(best.len() - 1);
            self.append(part, &best, after_unknown, out);
            let BestPath { score, id, .. } = best[part.len()];
            after_unknown = id == NONE;
            text = rest;
            best.clear();
            best.push(BestPath { score, ..UNREACHED });
        }
    }

    fn decode(&self, id: u32, at_start: bool, out: &mut Vec<u8>) {
        let token = self.texts.get(id).unwrap_or_default();
        if self.types.get(id as usize) == Some(&TokenType::Byte)
            && let Some(byte) = byte_of_token(token)
        {
            return out.push(byte);
        }
        let is_added = at_start && self.spaces.added == Some(Side::Before);
        let mut rest = if is_added { token.strip_prefix(SPACE).unwrap_or(token) } else { token };
        while let [first, after @ ..] = rest {
            if let Some(after) = rest.strip_prefix(SPACE) {
                out.push(b' ');
                rest = after;
            } else {
                out.push(*first);
                rest = after;
            }
        }
    }
}

/// Splits a text into units of the charsmap and returns their replacements.
struct Parts<'t> {
    charsmap: Option<&'t Charsmap>,
    rest: &'t str,
}

impl<'t> Iterator for Parts<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let text = self.rest;
        let char = text.chars().next()?;
        if let Some((len, replacement)) = self.charsmap.and_then(|map| map.replace(text.as_bytes()))
            // Keys are texts: only a forged key ends within a character.
            && let Some(rest) = text.get(len..)
        {
            self.rest = rest;
            return Some(replacement);
        }
        let (char, rest) = text.split_at(char.len_utf8());
        self.rest = rest;
        Some(char.as_bytes())
    }
}

/// Returns the tokens `<0x00>` to `<0xFF>`, if all of them exist.
fn byte_tokens(vocabulary: &Vocabulary<'_>) -> Option<Box<[u32; 256]>> {
    let mut bytes = Box::new([NONE; 256]);
    for (id, (token, kind)) in (0..).zip(vocabulary.tokens.iter().zip(&vocabulary.types)) {
        if *kind == TokenType::Byte
            && let Some(byte) = byte_of_token(token)
        {
            bytes[usize::from(byte)] = id;
        }
    }
    Some(bytes).filter(|bytes| !bytes.contains(&NONE))
}
