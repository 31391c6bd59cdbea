//! WordPiece, the tokenizer of BERT: text is cleaned and cut into words, and each word into the
//! longest tokens from its start on.
//!
//! The file marks the tokens that begin a word with U+2581; the others go on with one.

mod normalize;

use crate::error::Error;
use crate::model::Model;
use crate::model::words::Pool;
use crate::pieces::Pieces;
use crate::tokenizer::{Compat, Options};
use crate::trie::Trie;
use crate::vocabulary::{TokenType, Vocabulary};
use normalize::Normalizer;

/// What stands before tokens that begin a word: U+2581.
const START: &[u8] = "\u{2581}".as_bytes();

/// Longer words, in characters, become one unknown token: no file says otherwise.
const WORD_LEN: usize = 100;

/// Before these no space is written: as `tokenizers` cleans up after decoding.
const CLOSING: [&[u8]; 9] = [b".", b"?", b"!", b",", b"n't", b"'m", b"'s", b"'ve", b"'re"];

/// The vocabulary in two trees: what begins a word, and what continues one.
pub(crate) struct WordPiece {
    normalizer: Normalizer,
    starts: Trie,
    continuations: Trie,
    unknown: Option<u32>,
    word_len: usize,
    texts: Pieces,
    words: Pool,
}

impl WordPiece {
    /// # Errors
    /// If a token is absurdly long, or the unknown token does not exist.
    pub fn read(vocabulary: &Vocabulary<'_>, options: Options) -> Result<Self, Error> {
        let tokens = || {
            let tokens = vocabulary.tokens.iter().zip(&vocabulary.types).zip(0..);
            tokens
                .filter(|((_, kind), _)| **kind != TokenType::Control)
                .map(|((token, _), id)| (start_of_word(token), *token, id))
        };
        let lowercase = vocabulary.flag("normalizer.lowercase", true);
        Ok(Self {
            normalizer: Normalizer {
                lowercase,
                strip_accents: vocabulary.flag("normalizer.strip_accents", lowercase),
            },
            starts: Trie::new(tokens().filter_map(|(start, _, id)| Some((start?, id))))?,
            continuations: Trie::new(
                tokens().filter(|(start, ..)| start.is_none()).map(|(_, token, id)| (token, id)),
            )?,
            unknown: vocabulary.special_id("unk", Some(100))?,
            word_len: match options.compat {
                Compat::Own => WORD_LEN,
                Compat::Official => usize::MAX,
            },
            texts: vocabulary.tokens.iter().collect(),
            words: Pool::default(),
        })
    }

    /// The ids of a word in UTF-8.
    fn encode_word(&self, word: &[u8], out: &mut Vec<u32>) {
        // A word has at least as many bytes as characters, each of which has one first byte.
        let chars = || word.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        if word.len() <= self.word_len || chars() <= self.word_len {
            let before = out.len();
            let mut rest = word;
            let mut trie = &self.starts;
            while let Some((len, id)) = trie.longest(rest) {
                out.push(id);
                rest = rest.get(len..).unwrap_or_default();
                if rest.is_empty() {
                    return;
                }
                trie = &self.continuations;
            }
            out.truncate(before);
        }
        out.extend(self.unknown);
    }
}

impl Model for WordPiece {
    fn encode(&self, text: &str, _at_start: bool, out: &mut Vec<u32>) {
        self.words.with(|words| {
            self.normalizer.words(text, |text, word| {
                words.encode(text, (word.start, word.end), out, |word, out| {
                    self.encode_word(word, out);
                });
            });
        });
    }

    fn decode(&self, id: u32, at_start: bool, out: &mut Vec<u8>) {
        let token = self.texts.get(id).unwrap_or_default();
        let Some(start) = start_of_word(token) else { return out.extend_from_slice(token) };
        if !at_start && !CLOSING.iter().any(|closing| start.starts_with(closing)) {
            out.push(b' ');
        }
        out.extend_from_slice(start);
    }
}

/// The text of a token that begins a word. U+2581 alone is a token that continues one.
fn start_of_word(token: &[u8]) -> Option<&[u8]> {
    token.strip_prefix(START).filter(|rest| !rest.is_empty())
}
