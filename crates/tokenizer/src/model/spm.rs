//! SentencePiece BPE: merges the neighbours whose merged text has the best score first.
//! `tokenizer.ggml.model` is `llama`.

use gguf::Error;
use gguf_models::token::{TokenType, byte_of_token};

use crate::model::Model;
use crate::model::merge::{MergeRule, NO_TOKEN, Symbol, characters, merge_word, trace_merges};
use crate::model::spaces::{has_space, to_spaces, with_spaces};
use crate::model::split_points::SplitPoints;
use crate::model::word_cache::CachePool;
use crate::options::{Compat, TokenizerOptions};
use crate::special::is_run_of_spaces;
use crate::token_table::{Index, TokenTable};
use crate::trace::Word;
use crate::vocabulary::Vocabulary;

pub(crate) struct Spm {
    /// Texts of the tokens with plain spaces; byte tokens as their bytes.
    pieces: TokenTable,
    index: Index,
    /// Ranks by id: lower is better.
    ranks: Vec<u32>,
    /// Byte-fallback tokens.
    bytes: [Option<u32>; 256],
    unknown: Option<u32>,
    split_points: SplitPoints,
    /// Prepend a space to texts.
    prefix: bool,
    words: CachePool,
}

impl Spm {
    pub(crate) fn read(
        vocabulary: &Vocabulary<'_>,
        options: TokenizerOptions,
    ) -> Result<Self, Error> {
        let types = &vocabulary.types;
        let mut bytes = [None; 256];
        let mut pieces = TokenTable::default();
        for (id, (token, kind)) in (0..).zip(vocabulary.tokens.iter().zip(types)) {
            let byte = byte_of_token(token);
            // Files without token types have byte tokens too.
            if let Some(byte) = byte {
                bytes[usize::from(byte)] = Some(id);
            }
            match byte.filter(|_| *kind == TokenType::Byte) {
                Some(byte) => pieces.push_with(|out| out.push(byte)),
                None => pieces.push_with(|out| to_spaces(token, out)),
            }
        }
        // A space in a text is always a visible one. SentencePiece matches only tokens that stand
        // for text; llama.cpp matches any.
        let is_original = options.compat == Compat::Original;
        let merged = |id: u32| {
            is_original
                && types[id as usize] == TokenType::UserDefined
                && is_run_of_spaces(vocabulary.tokens[id as usize])
        };
        let found = |id: u32| {
            let kind = types[id as usize];
            kind != TokenType::Byte
                && !(is_original && kind.is_special())
                && (merged(id) || !has_space(vocabulary.tokens[id as usize]))
        };
        let index = Index::new(&pieces, found);
        let split_points = SplitPoints::new(index.ids().filter_map(|id| pieces.get(id)));
        // Runs of spaces without scores of their own merge before words, the shortest first.
        let scores = vocabulary.scores()?;
        let mut of_runs = (0..).zip(&scores).filter(|(id, _)| merged(*id)).map(|(_, score)| *score);
        let first = of_runs.next();
        let are_equal = of_runs.all(|score| Some(score) == first);
        let ranks = (0..).zip(scores).map(|(id, score)| match are_equal && merged(id) {
            true => pieces.get(id).map_or(0, <[u8]>::len) as u32,
            false => rank(score),
        });
        Ok(Self {
            index,
            split_points,
            ranks: ranks.collect(),
            pieces,
            bytes,
            unknown: vocabulary.special_id("unk", Some(0))?,
            prefix: vocabulary.flag("add_space_prefix", true),
            words: CachePool::default(),
        })
    }

    /// Returns the result of merging two neighbours of a word.
    fn rule(&self, word: &[u8], left: Symbol, right: Symbol) -> Option<MergeRule> {
        let id = self.index.find(&self.pieces, &word[left.start..right.start + right.len])?;
        Some(MergeRule { rank: *self.ranks.get(id as usize)?, id })
    }

    /// Traces the merges of a word, as [`Spm::encode_word`] without its shortcuts.
    fn trace_word(&self, word: &[u8]) -> Word {
        let mut ids = Vec::new();
        self.encode_word(word, &mut Vec::new(), &mut ids);
        let find = |char: &[u8]| self.index.find(&self.pieces, char);
        let mut symbols: Vec<Symbol> = characters(word, 0, find).collect();
        let symbol_text = |symbol: &Symbol| word[symbol.start..symbol.start + symbol.len].to_vec();
        let texts = symbols.iter().map(symbol_text).collect();
        let rule = |left: Symbol, right: Symbol| self.rule(word, left, right);
        let merges = trace_merges(word, &mut symbols, false, rule);
        Word { symbols: texts, merges, ids: ids.len() }
    }

    fn encode_word(&self, word: &[u8], symbols: &mut Vec<Symbol>, out: &mut Vec<u32>) {
        let find = |text: &[u8]| self.index.find(&self.pieces, text);
        let rule = |left: Symbol, right: Symbol| self.rule(word, left, right);
        let initial = |start| characters(word, start, find);
        merge_word(word, (&self.index, &self.pieces), symbols, initial, rule, |symbol| {
            if symbol.id != NO_TOKEN {
                return out.push(symbol.id);
            }
            let bytes = &word[symbol.start..symbol.start + symbol.len];
            if bytes.iter().all(|byte| self.bytes[usize::from(*byte)].is_some()) {
                out.extend(bytes.iter().filter_map(|byte| self.bytes[usize::from(*byte)]));
            } else {
                out.extend(self.unknown);
            }
        });
    }
}

impl Model for Spm {
    fn encode(&self, text: &str, _at_start: bool, out: &mut Vec<u32>) {
        let before = out.len();
        // After special tokens too: as models were trained, and as all runtimes do.
        let text = with_spaces(text, self.prefix);
        let text = text.as_bytes();
        let mut symbols = Vec::new();
        self.words.with(|words| {
            self.split_points.split(text, |start, end| {
                words.encode(text, (start, end), out, |word, out| {
                    self.encode_word(word, &mut symbols, out);
                });
            });
        });
        if let Some(unknown) = self.unknown
            && self.bytes.contains(&None)
        {
            collapse(out, before, unknown);
        }
    }

    fn trace(&self, text: &str) -> Option<Vec<Word>> {
        let text = with_spaces(text, self.prefix);
        let text = text.as_bytes();
        let mut words = Vec::new();
        self.split_points.split(text, |start, end| words.push(self.trace_word(&text[start..end])));
        Some(words)
    }

    fn decode(&self, id: u32, at_start: bool, out: &mut Vec<u8>) {
        let bytes = self.pieces.get(id).unwrap_or_default();
        let is_original = at_start && self.prefix;
        out.extend_from_slice(bytes.strip_prefix(b" ").filter(|_| is_original).unwrap_or(bytes));
    }
}

/// Collapses each run of `id` from `start` on: consecutive unknown characters are one token.
fn collapse(ids: &mut Vec<u32>, start: usize, id: u32) {
    let mut end = start;
    for i in start..ids.len() {
        if ids[i] != id || end == start || ids[end - 1] != id {
            ids[end] = ids[i];
            end += 1;
        }
    }
    ids.truncate(end);
}

/// Maps a score to a rank: the higher the score, the lower the rank.
fn rank(score: f32) -> u32 {
    // Adding 0 turns -0 into 0.
    let bits = (-score + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_scores_have_lower_ranks() {
        let scores = [f32::INFINITY, 3.5, 1e-40, 0.0, -1e-40, -1.0, -2.0, f32::NEG_INFINITY];
        assert!(scores.windows(2).all(|pair| rank(pair[0]) < rank(pair[1])));
        assert_eq!(rank(0.0), rank(-0.0));
    }

    #[test]
    fn collapses_runs_of_unknown_tokens() {
        let mut ids = vec![0, 0, 0, 0, 1, 0, 0];
        collapse(&mut ids, 1, 0);
        assert_eq!(ids, [0, 0, 1, 0]);
    }
}
