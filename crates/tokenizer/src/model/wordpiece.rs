//! WordPiece, the tokenizer of BERT: text is cleaned and cut into words, and each word into the
//! longest tokens from its start on.
//!
//! The file marks the tokens that begin a word with U+2581; the others go on with one.

mod normalize;

use gguf::Error;
use gguf_models::token::TokenType;
use normalize::Normalizer;

use crate::model::Model;
use crate::model::word_cache::CachePool;
use crate::options::{Compat, Options};
use crate::token_table::TokenTable;
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;

/// What stands before tokens that begin a word: U+2581.
const START: &[u8] = "\u{2581}".as_bytes();

/// Longer words, in characters, become one unknown token: no file says otherwise.
const WORD_LEN: usize = 100;

/// Before these no space is written: as `tokenizers` cleans up after decoding.
const CLOSING: [&[u8]; 9] = [b".", b"?", b"!", b",", b"n't", b"'m", b"'s", b"'ve", b"'re"];

/// The tokens, by what can come next in a word.
enum Tokens {
    /// What begins a word, and what continues one; no control tokens.
    Own { starts: Trie, continuations: Trie },
    /// As llama.cpp looks: all as the file spells them, within a word with U+2581 in front. A
    /// token U+2581 makes any continuation the start of a word.
    LlamaCpp(Trie),
}

pub(crate) struct WordPiece {
    normalizer: Normalizer,
    tokens: Tokens,
    unknown: Option<u32>,
    texts: TokenTable,
    words: CachePool,
}

impl WordPiece {
    /// # Errors
    /// If a token is absurdly long, or the unknown token does not exist.
    pub fn read(vocabulary: &Vocabulary<'_>, options: Options) -> Result<Self, Error> {
        let lowercase = vocabulary.flag("normalizer.lowercase", true);
        Ok(Self {
            normalizer: Normalizer {
                lowercase,
                strip_accents: vocabulary.flag("normalizer.strip_accents", lowercase),
                compat: options.compat,
            },
            tokens: match options.compat {
                Compat::Own => Tokens::own(vocabulary)?,
                Compat::LlamaCpp => {
                    Tokens::LlamaCpp(Trie::new(vocabulary.tokens.iter().copied().zip(0..))?)
                }
            },
            unknown: vocabulary.special_id("unk", Some(100))?,
            texts: vocabulary.tokens.iter().collect(),
            words: CachePool::default(),
        })
    }

    /// The ids of a word in UTF-8.
    fn encode_word(&self, word: &[u8], out: &mut Vec<u32>) {
        let before = out.len();
        let is_whole = match &self.tokens {
            Tokens::Own { starts, continuations } => {
                is_short(word) && cut(word, starts, continuations, out)
            }
            Tokens::LlamaCpp(all) => cut(&[START, word].concat(), all, all, out),
        };
        if !is_whole {
            out.truncate(before);
            out.extend(self.unknown);
        }
    }
}

impl Tokens {
    fn own(vocabulary: &Vocabulary<'_>) -> Result<Self, Error> {
        let tokens = || {
            let tokens = vocabulary.tokens.iter().zip(&vocabulary.types).zip(0..);
            tokens
                .filter(|((_, kind), _)| **kind != TokenType::Control)
                .map(|((token, _), id)| (start_of_word(token), *token, id))
        };
        Ok(Self::Own {
            starts: Trie::new(tokens().filter_map(|(start, _, id)| Some((start?, id))))?,
            continuations: Trie::new(
                tokens().filter(|(start, ..)| start.is_none()).map(|(_, token, id)| (token, id)),
            )?,
        })
    }
}

/// False if the word has too many characters to be anything but unknown.
fn is_short(word: &[u8]) -> bool {
    // It has at least as many bytes as characters, each of which has one first byte.
    let chars = || word.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    word.len() <= WORD_LEN || chars() <= WORD_LEN
}

/// Appends the longest tokens from the start of the word on; false if some part is none.
fn cut(word: &[u8], starts: &Trie, continuations: &Trie, out: &mut Vec<u32>) -> bool {
    let (mut rest, mut trie) = (word, starts);
    while let Some((len, id)) = trie.longest(rest) {
        out.push(id);
        rest = rest.get(len..).unwrap_or_default();
        if rest.is_empty() {
            return true;
        }
        trie = continuations;
    }
    false
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
