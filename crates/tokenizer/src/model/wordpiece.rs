//! WordPiece, the tokenizer of BERT: normalizes a text, splits it into words, and matches the
//! longest tokens from the start of each word on.
//!
//! The file marks tokens that begin a word with U+2581; the others continue one.

mod normalize;

use gguf::Error;
use gguf_models::token::TokenType;
use normalize::Normalizer;

use crate::model::Model;
use crate::model::word_cache::CachePool;
use crate::options::{Compat, TokenizerOptions};
use crate::token_table::TokenTable;
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;

/// Prefix of tokens that begin a word: U+2581.
const WORD_START: &[u8] = "\u{2581}".as_bytes();

/// Maximum length of a word in characters; longer words become one unknown token. Files do not
/// state it.
const MAX_WORD_CHARS: usize = 100;

/// Tokens that are not preceded by a space: the decoder cleanup of `tokenizers`.
const NO_SPACE_BEFORE: [&[u8]; 9] = [b".", b"?", b"!", b",", b"n't", b"'m", b"'s", b"'ve", b"'re"];

/// Tokens by their position in a word.
enum Tokens {
    /// Tokens that begin a word and tokens that continue one, without control tokens.
    Original { starts: Trie, continuations: Trie },
    /// llama.cpp: all tokens as in the file, matched against a word with U+2581 in front. A token
    /// U+2581 lets any continuation begin a word.
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
    /// If a token exceeds the maximum length, or the unknown token does not exist.
    pub fn read(vocabulary: &Vocabulary<'_>, options: TokenizerOptions) -> Result<Self, Error> {
        let lowercase = vocabulary.flag("normalizer.lowercase", true);
        Ok(Self {
            normalizer: Normalizer {
                lowercase,
                strip_accents: vocabulary.flag("normalizer.strip_accents", lowercase),
                compat: options.compat,
            },
            tokens: match options.compat {
                Compat::Original => Tokens::original(vocabulary)?,
                Compat::LlamaCpp => {
                    Tokens::LlamaCpp(Trie::new(vocabulary.tokens.iter().copied().zip(0..))?)
                }
            },
            unknown: vocabulary.special_id("unk", Some(100))?,
            texts: vocabulary.tokens.iter().collect(),
            words: CachePool::default(),
        })
    }

    /// Appends the ids of a word in UTF-8.
    fn encode_word(&self, word: &[u8], out: &mut Vec<u32>) {
        let before = out.len();
        let is_whole = match &self.tokens {
            Tokens::Original { starts, continuations } => {
                is_short(word) && match_longest(word, starts, continuations, out)
            }
            Tokens::LlamaCpp(all) => match_longest(&[WORD_START, word].concat(), all, all, out),
        };
        if !is_whole {
            out.truncate(before);
            out.extend(self.unknown);
        }
    }
}

impl Tokens {
    fn original(vocabulary: &Vocabulary<'_>) -> Result<Self, Error> {
        let tokens = || {
            let tokens = vocabulary.tokens.iter().zip(&vocabulary.types).zip(0..);
            tokens
                .filter(|((_, kind), _)| **kind != TokenType::Control)
                .map(|((token, _), id)| (start_of_word(token), *token, id))
        };
        Ok(Self::Original {
            starts: Trie::new(tokens().filter_map(|(start, _, id)| Some((start?, id))))?,
            continuations: Trie::new(
                tokens().filter(|(start, ..)| start.is_none()).map(|(_, token, id)| (token, id)),
            )?,
        })
    }
}

/// Whether a word is short enough to be matched.
fn is_short(word: &[u8]) -> bool {
    // A word has at most as many characters as bytes; each character has one leading byte.
    let chars = || word.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    word.len() <= MAX_WORD_CHARS || chars() <= MAX_WORD_CHARS
}

/// Appends the longest tokens from the start of the word on; false if a part does not match.
fn match_longest(word: &[u8], starts: &Trie, continuations: &Trie, out: &mut Vec<u32>) -> bool {
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
        if !at_start && !NO_SPACE_BEFORE.iter().any(|suffix| start.starts_with(suffix)) {
            out.push(b' ');
        }
        out.extend_from_slice(start);
    }
}

/// Returns the text of a token that begins a word. U+2581 alone continues one.
fn start_of_word(token: &[u8]) -> Option<&[u8]> {
    token.strip_prefix(WORD_START).filter(|rest| !rest.is_empty())
}
