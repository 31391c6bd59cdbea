//! Byte-pair encoding (BPE) by a list of merges, within the words of a pre-tokenizer.
//!
//! `tokenizer.ggml.model` is `gpt2`; `gemma4` for SentencePiece's visible spaces, which some values
//! of `tokenizer.ggml.pre` imply as well; `whitespace` if white space only separates words.

mod alphabet;
mod merges;
mod pre;

use std::borrow::Cow;

use gguf::Error;
use gguf_models::token::{TokenType, byte_of_token};
use merges::Merges;
use pre::{Alphabet, PreTokenizer};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::model::Model;
use crate::model::merge::{NO_TOKEN, Symbol, characters, merge_word, trace_merges};
use crate::model::spaces::{has_space, to_spaces, with_spaces};
use crate::model::split_points::SplitPoints;
use crate::model::word_cache::{CachePool, WordCache};
use crate::options::{Compat, TokenizerOptions};
use crate::token_table::{Index, TokenTable};
use crate::trace::Word;
use crate::vocabulary::Vocabulary;

pub(crate) struct Bpe {
    /// Bytes that the tokens stand for; byte tokens as their byte.
    pieces: TokenTable,
    index: Index,
    merges: Merges,
    /// Token of each byte, for byte fallback.
    bytes: [u32; 256],
    /// Drop bytes without a token before merging, not after.
    drops_unknown_bytes: bool,
    pre: PreTokenizer,
    /// Positions where words can be split further.
    split_points: Option<SplitPoints>,
    /// Normalize text to NFC.
    normalize: bool,
    words: CachePool,
}

impl Bpe {
    pub(crate) fn read(
        vocabulary: &Vocabulary<'_>,
        options: TokenizerOptions,
    ) -> Result<Self, Error> {
        let pre = PreTokenizer::read(vocabulary, options)?;
        let decoded = decode_tokens(vocabulary, pre.alphabet);
        let index = Index::new(&decoded.pieces, |id| decoded.matchable[id as usize]);
        let merges = Merges::read(vocabulary, &decoded.pieces, &index, pre.alphabet)?;
        let mut bytes = decoded.bytes;
        if pre.alphabet == Alphabet::ByteLevel {
            bytes = std::array::from_fn(|byte| {
                index.find(&decoded.pieces, &[byte as u8]).unwrap_or(NO_TOKEN)
            });
        }
        // Words of a byte-level pre-tokenizer are short already.
        let split_points = (pre.alphabet != Alphabet::ByteLevel)
            .then(|| SplitPoints::new(index.ids().filter_map(|id| decoded.pieces.get(id))));
        Ok(Self {
            normalize: options.compat == Compat::Original
                && options.normalize.unwrap_or_else(|| pre.is_normalized(vocabulary)),
            pieces: decoded.pieces,
            words: CachePool::default(),
            index,
            merges,
            // Most vocabularies have a token for every byte.
            drops_unknown_bytes: options.compat == Compat::Original
                && pre.alphabet == Alphabet::ByteLevel
                && bytes.contains(&NO_TOKEN),
            bytes,
            pre,
            split_points,
        })
    }

    fn encode_word(&self, word: &[u8], symbols: &mut Vec<Symbol>, out: &mut Vec<u32>) {
        if self.pre.ignores_merges(word)
            && let Some(id) = self.index.find(&self.pieces, word)
        {
            return out.push(id);
        }
        let reduced = self.without_unknown_bytes(word);
        let word = &*reduced;
        let rule = |left: Symbol, right: Symbol| self.merges.find(left.id, right.id);
        let tokens = (&self.index, &self.pieces);
        let out = |symbol: &Symbol| {
            if symbol.id != NO_TOKEN {
                out.push(symbol.id);
            } else {
                let bytes = &word[symbol.start..symbol.start + symbol.len];
                let ids = bytes.iter().map(|byte| self.bytes[usize::from(*byte)]);
                out.extend(ids.filter(|id| *id != NO_TOKEN));
            }
        };
        match self.pre.alphabet {
            Alphabet::ByteLevel => {
                let initial = |start| (start..word.len()).map(|start| self.byte(word, start));
                merge_word(word, tokens, symbols, initial, rule, out);
            }
            Alphabet::Characters { .. } => {
                let find = |char: &[u8]| self.index.find(&self.pieces, char);
                let initial = |start| characters(word, start, find);
                merge_word(word, tokens, symbols, initial, rule, out);
            }
        }
    }

    fn encode_words(&self, text: &[u8], words: &mut WordCache, out: &mut Vec<u32>) {
        let mut symbols = Vec::new();
        let mut encode = |start, end| {
            words.encode(text, (start, end), out, |word, out| {
                self.encode_word(word, &mut symbols, out);
            });
        };
        self.split(text, &mut encode);
    }

    /// Splits a text into words and calls `out` with the range of each.
    fn split(&self, text: &[u8], out: &mut impl FnMut(usize, usize)) {
        self.pre.split(text, &mut |start, end| match &self.split_points {
            Some(split_points) if !self.pre.ignores_merges(&text[start..end]) => {
                split_points.split(&text[start..end], |from, to| out(start + from, start + to));
            }
            _ => out(start, end),
        });
    }

    /// Normalizes a text and its spaces.
    fn prepared<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        // ASCII is in NFC, and does not combine with its neighbours.
        let others = || text.chars().filter(|c| !c.is_ascii());
        if self.normalize && is_nfc_quick(others()) != IsNormalized::Yes {
            text = text.nfc().collect::<String>().into();
        }
        match self.pre.alphabet {
            Alphabet::Characters { visible_spaces: true } => {
                with_spaces(&text, false).into_owned().into()
            }
            _ => text,
        }
    }

    /// Traces the merges of a word, as [`Bpe::encode_word`] without its shortcuts.
    fn trace_word(&self, word: &[u8]) -> Word {
        let mut ids = Vec::new();
        self.encode_word(word, &mut Vec::new(), &mut ids);
        let whole = Word { symbols: vec![word.to_vec()], merges: Vec::new(), ids: ids.len() };
        if self.pre.ignores_merges(word) && self.index.find(&self.pieces, word).is_some() {
            return whole;
        }
        let reduced = self.without_unknown_bytes(word);
        let word = &*reduced;
        let mut symbols: Vec<Symbol> = match self.pre.alphabet {
            Alphabet::ByteLevel => (0..word.len()).map(|start| self.byte(word, start)).collect(),
            Alphabet::Characters { .. } => {
                characters(word, 0, |char| self.index.find(&self.pieces, char)).collect()
            }
        };
        let symbol_text = |symbol: &Symbol| word[symbol.start..symbol.start + symbol.len].to_vec();
        let texts = symbols.iter().map(symbol_text).collect();
        let rule = |left: Symbol, right: Symbol| self.merges.find(left.id, right.id);
        let merges = trace_merges(word, &mut symbols, true, rule);
        Word { symbols: texts, merges, ids: ids.len() }
    }

    /// Removes the bytes without a token, if they are dropped before merging.
    fn without_unknown_bytes<'w>(&self, word: &'w [u8]) -> Cow<'w, [u8]> {
        let mut reduced = Cow::Borrowed(word);
        if self.drops_unknown_bytes {
            reduced.to_mut().retain(|byte| self.bytes[usize::from(*byte)] != NO_TOKEN);
        }
        reduced
    }

    fn byte(&self, word: &[u8], start: usize) -> Symbol {
        Symbol { start, len: 1, id: self.bytes[usize::from(word[start])] }
    }
}

impl Model for Bpe {
    fn encode(&self, text: &str, _at_start: bool, out: &mut Vec<u32>) {
        let text = self.prepared(text);
        self.words.with(|words| self.encode_words(text.as_bytes(), words, out));
    }

    fn trace(&self, text: &str) -> Option<Vec<Word>> {
        let text = self.prepared(text);
        let mut words = Vec::new();
        self.split(text.as_bytes(), &mut |start, end| {
            words.push(self.trace_word(&text.as_bytes()[start..end]));
        });
        Some(words)
    }

    fn decode(&self, id: u32, _at_start: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(self.pieces.get(id).unwrap_or_default());
    }
}

/// Decoded texts of the tokens.
struct DecodedTokens {
    pieces: TokenTable,
    /// Whether text can become this token, by id.
    matchable: Vec<bool>,
    /// Byte-fallback tokens.
    bytes: [u32; 256],
}

fn decode_tokens(vocabulary: &Vocabulary<'_>, alphabet: Alphabet) -> DecodedTokens {
    let mut pieces = TokenTable::default();
    let mut matchable = Vec::with_capacity(vocabulary.tokens.len());
    let mut bytes = [NO_TOKEN; 256];
    for (id, (token, kind)) in (0..).zip(vocabulary.tokens.iter().zip(&vocabulary.types)) {
        let is_matchable = match alphabet {
            Alphabet::ByteLevel => {
                let mut all = true;
                pieces.push_with(|out| all = alphabet::decode(token, out));
                all
            }
            Alphabet::Characters { visible_spaces } => {
                let byte = byte_of_token(token);
                if let Some(byte) = byte {
                    bytes[usize::from(byte)] = id;
                }
                match byte.filter(|_| *kind == TokenType::Byte) {
                    Some(byte) => pieces.push_with(|out| out.push(byte)),
                    None if visible_spaces => pieces.push_with(|out| to_spaces(token, out)),
                    None => pieces.push_with(|out| out.extend_from_slice(token)),
                }
                *kind != TokenType::Byte && !(visible_spaces && has_space(token))
            }
        };
        matchable.push(is_matchable);
    }
    DecodedTokens { pieces, matchable, bytes }
}
