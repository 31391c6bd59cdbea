//! Byte pair encoding by a list of merges, within the words that a pre-tokenizer cuts.
//!
//! `tokenizer.ggml.model` is `gpt2`; `gemma4` for SentencePiece's spelling of spaces, which
//! `tokenizer.ggml.pre` can ask for as well; `whitespace` where white space only separates.

mod alphabet;
mod merges;
mod pre;

use std::borrow::Cow;

use gguf::Error;
use gguf_models::token::{TokenType, byte_of_token};
use merges::Merges;
use pre::{Pre, Spelling};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::model::Model;
use crate::model::merge::{NO_TOKEN, Symbol, characters, merge_word, trace_merges};
use crate::model::spaces::{has_space, to_spaces, with_spaces};
use crate::model::split_points::SplitPoints;
use crate::model::word_cache::{CachePool, WordCache};
use crate::options::{Compat, Options};
use crate::token_table::{Index, TokenTable};
use crate::trace::Word;
use crate::vocabulary::Vocabulary;

pub(crate) struct Bpe {
    /// What the tokens stand for, byte tokens as their byte.
    pieces: TokenTable,
    index: Index,
    merges: Merges,
    /// The token of each byte.
    bytes: [u32; 256],
    /// Bytes without a token are dropped before merges, not after.
    drops_early: bool,
    pre: Pre,
    /// Where words can be cut further.
    split_points: Option<SplitPoints>,
    /// Text is brought to Unicode's normalization form C.
    normalize: bool,
    words: CachePool,
}

impl Bpe {
    pub(crate) fn read(vocabulary: &Vocabulary<'_>, options: Options) -> Result<Self, Error> {
        let pre = Pre::read(vocabulary, options)?;
        let spelled = spelled(vocabulary, pre.spelling);
        let index = Index::new(&spelled.pieces, |id| spelled.found[id as usize]);
        let merges = Merges::read(vocabulary, &spelled.pieces, &index, pre.spelling)?;
        let mut bytes = spelled.bytes;
        if pre.spelling == Spelling::Bytes {
            bytes = std::array::from_fn(|byte| {
                index.find(&spelled.pieces, &[byte as u8]).unwrap_or(NO_TOKEN)
            });
        }
        // WordCache that the pre-tokenizer cuts are short already.
        let split_points = (pre.spelling != Spelling::Bytes)
            .then(|| SplitPoints::new(index.ids().filter_map(|id| spelled.pieces.get(id))));
        Ok(Self {
            normalize: options.compat == Compat::Own
                && options.normalize.unwrap_or_else(|| pre.is_normalized(vocabulary)),
            pieces: spelled.pieces,
            words: CachePool::default(),
            index,
            merges,
            // Most vocabularies have all of them.
            drops_early: options.compat == Compat::Own
                && pre.spelling == Spelling::Bytes
                && bytes.contains(&NO_TOKEN),
            bytes,
            pre,
            split_points,
        })
    }

    fn encode_word(&self, word: &[u8], symbols: &mut Vec<Symbol>, out: &mut Vec<u32>) {
        if self.pre.takes_whole(word)
            && let Some(id) = self.index.find(&self.pieces, word)
        {
            return out.push(id);
        }
        let kept = self.kept(word);
        let word = &*kept;
        let join = |left: Symbol, right: Symbol| self.merges.find(left.id, right.id);
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
        match self.pre.spelling {
            Spelling::Bytes => {
                let initial = |start| (start..word.len()).map(|start| self.byte(word, start));
                merge_word(word, tokens, symbols, initial, join, out);
            }
            Spelling::Characters { .. } => {
                let find = |char: &[u8]| self.index.find(&self.pieces, char);
                let initial = |start| characters(word, start, find);
                merge_word(word, tokens, symbols, initial, join, out);
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
        self.cut(text, &mut encode);
    }

    /// Hands out the words of a text, from where to where.
    fn cut(&self, text: &[u8], out: &mut impl FnMut(usize, usize)) {
        self.pre.cut(text, &mut |start, end| match &self.split_points {
            Some(split_points) if !self.pre.takes_whole(&text[start..end]) => {
                split_points.cut(&text[start..end], |from, to| out(start + from, start + to));
            }
            _ => out(start, end),
        });
    }

    /// The text as its words are cut.
    fn prepared<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        // ASCII is normalized, and keeps what is on its sides apart.
        let others = || text.chars().filter(|c| !c.is_ascii());
        if self.normalize && is_nfc_quick(others()) != IsNormalized::Yes {
            text = text.nfc().collect::<String>().into();
        }
        match self.pre.spelling {
            Spelling::Characters { visible_spaces: true } => {
                with_spaces(&text, false).into_owned().into()
            }
            _ => text,
        }
    }

    /// As [`Bpe::encode_word`], without its short cuts.
    fn trace_word(&self, word: &[u8]) -> Word {
        let mut ids = Vec::new();
        self.encode_word(word, &mut Vec::new(), &mut ids);
        let whole = Word { symbols: vec![word.to_vec()], merges: Vec::new(), ids: ids.len() };
        if self.pre.takes_whole(word) && self.index.find(&self.pieces, word).is_some() {
            return whole;
        }
        let kept = self.kept(word);
        let word = &*kept;
        let mut symbols: Vec<Symbol> = match self.pre.spelling {
            Spelling::Bytes => (0..word.len()).map(|start| self.byte(word, start)).collect(),
            Spelling::Characters { .. } => {
                characters(word, 0, |char| self.index.find(&self.pieces, char)).collect()
            }
        };
        let of = |symbol: &Symbol| word[symbol.start..symbol.start + symbol.len].to_vec();
        let texts = symbols.iter().map(of).collect();
        let join = |left: Symbol, right: Symbol| self.merges.find(left.id, right.id);
        let merges = trace_merges(word, &mut symbols, true, join);
        Word { symbols: texts, merges, ids: ids.len() }
    }

    /// A word without the bytes that are dropped early.
    fn kept<'w>(&self, word: &'w [u8]) -> Cow<'w, [u8]> {
        let mut kept = Cow::Borrowed(word);
        if self.drops_early {
            kept.to_mut().retain(|byte| self.bytes[usize::from(*byte)] != NO_TOKEN);
        }
        kept
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
        self.cut(text.as_bytes(), &mut |start, end| {
            words.push(self.trace_word(&text.as_bytes()[start..end]));
        });
        Some(words)
    }

    fn decode(&self, id: u32, _at_start: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(self.pieces.get(id).unwrap_or_default());
    }
}

/// The tokens as the bytes that they stand for.
struct Spelled {
    pieces: TokenTable,
    /// By id: whether text can become this token.
    found: Vec<bool>,
    /// The tokens for single bytes of characters that are no token.
    bytes: [u32; 256],
}

fn spelled(vocabulary: &Vocabulary<'_>, spelling: Spelling) -> Spelled {
    let mut pieces = TokenTable::default();
    let mut found = Vec::with_capacity(vocabulary.tokens.len());
    let mut bytes = [NO_TOKEN; 256];
    for (id, (token, kind)) in (0..).zip(vocabulary.tokens.iter().zip(&vocabulary.types)) {
        let is_found = match spelling {
            Spelling::Bytes => {
                let mut all = true;
                pieces.push_with(|out| all = alphabet::decode(token, out));
                all
            }
            Spelling::Characters { visible_spaces } => {
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
        found.push(is_found);
    }
    Spelled { pieces, found, bytes }
}
