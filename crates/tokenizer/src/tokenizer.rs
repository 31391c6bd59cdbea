//! The tokenizer of a model: special tokens, and the model between them.

use gguf::{Error, Metadata};
use gguf_models::token::TokenType;
use rayon::prelude::*;

use crate::model::{self, Model, rwkv};
use crate::options::{Decode, Encode, Options};
use crate::special::{BosEos, Fragment, Splitter, is_run_of_spaces};
use crate::token_table::TokenTable;
use crate::trace::{Piece, Trace};
use crate::vocabulary::Vocabulary;

/// Turns text into the token ids of a model, and back.
///
/// It owns what it needs (the tokens' bytes as one run) and can be shared by threads.
///
/// ```
/// use gguf::{Array, Metadata};
/// use gguf_tokenizer::{Decode, Encode, Options, Tokenizer};
/// let mut metadata = Metadata::new();
/// metadata.set("tokenizer.ggml.model", "llama");
/// metadata.set("tokenizer.ggml.tokens", Array::from_strings(["<unk>", "a", "b", "ab", "\u{2581}"]));
/// metadata.set("tokenizer.ggml.scores", Array::from(&[0f32, -2.0, -3.0, -1.0, -4.0][..]));
/// metadata.set("tokenizer.ggml.add_bos_token", false);
/// let tokenizer = Tokenizer::from_metadata(&metadata, Options::default())?;
/// let ids = tokenizer.encode("ab a", Encode::default());
/// assert_eq!(ids, [4, 3, 4, 1]);
/// assert_eq!(tokenizer.decode(&ids, Decode::default()), b"ab a");
/// # Ok::<(), gguf::Error>(())
/// ```
pub struct Tokenizer {
    model: Box<dyn Model>,
    splitter: Splitter,
    ends: BosEos,
    /// The texts of all tokens, as in the file.
    texts: TokenTable,
    types: Vec<TokenType>,
}

impl Tokenizer {
    /// Reads the `tokenizer.ggml.*` keys of a model.
    ///
    /// # Errors
    /// If keys are missing or contradict each other, or the kind of tokenizer is not known.
    pub fn from_metadata(metadata: &Metadata, options: Options) -> Result<Self, Error> {
        let with_tokens = rwkv::with_tokens(metadata)?;
        let vocabulary = Vocabulary::read(with_tokens.as_ref().unwrap_or(metadata))?;
        Ok(Self {
            model: model::read(&vocabulary, options)?,
            splitter: Splitter::new(&vocabulary, options),
            ends: BosEos::read(&vocabulary)?,
            texts: vocabulary.tokens.iter().collect(),
            types: vocabulary.types,
        })
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// True if there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The ids of a text.
    pub fn encode(&self, text: &str, how: Encode) -> Vec<u32> {
        // English text has about four bytes to a token.
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        if how.add_special {
            ids.extend(self.ends.first);
        }
        let mut at_start = true;
        self.splitter.split(text, how.parse_special, &mut |fragment| match fragment {
            Fragment::Text(text) => {
                self.model.encode(text, at_start, &mut ids);
                at_start = false;
            }
            Fragment::Token(id) => ids.push(id),
        });
        if how.add_special {
            ids.extend(self.ends.last);
        }
        ids
    }

    /// The ids of a text, and how they came about. For short texts: it takes many times as long as
    /// [`Tokenizer::encode`], and more memory than the text.
    pub fn trace(&self, text: &str, how: Encode) -> Trace {
        let mut trace = Trace::default();
        let special = |id: u32, trace: &mut Trace| {
            let text = String::from_utf8_lossy(self.texts.get(id).unwrap_or_default()).into_owned();
            let at = trace.ids.len();
            trace.ids.push(id);
            trace.pieces.push(Piece { text, special: true, ids: at..at + 1, words: None });
        };
        if let Some(id) = self.ends.first.filter(|_| how.add_special) {
            special(id, &mut trace);
        }
        let mut at_start = true;
        self.splitter.split(text, how.parse_special, &mut |fragment| match fragment {
            Fragment::Text(text) => {
                let before = trace.ids.len();
                self.model.encode(text, at_start, &mut trace.ids);
                let (ids, words) = (before..trace.ids.len(), self.model.trace(text));
                trace.pieces.push(Piece { text: text.to_owned(), special: false, ids, words });
                at_start = false;
            }
            Fragment::Token(id) => special(id, &mut trace),
        });
        if let Some(id) = self.ends.last.filter(|_| how.add_special) {
            special(id, &mut trace);
        }
        trace
    }

    /// The ids of each text, on all cores.
    pub fn encode_batch<S: AsRef<str> + Sync>(&self, texts: &[S], how: Encode) -> Vec<Vec<u32>> {
        texts.par_iter().map(|text| self.encode(text.as_ref(), how)).collect()
    }

    /// The bytes that a token stands for in the middle of a text, the texts of control tokens
    /// included; `None` if there is no such token.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        ((id as usize) < self.len()).then(|| {
            let mut bytes = Vec::new();
            self.append(id, false, &mut bytes);
            bytes
        })
    }

    /// The type of a token; `None` if there is no such token.
    pub fn token_type(&self, id: u32) -> Option<TokenType> {
        self.types.get(id as usize).copied()
    }

    /// The text of a token as the file has it; `None` if there is no such token.
    pub fn token_text(&self, id: u32) -> Option<&[u8]> {
        self.texts.get(id)
    }

    /// Whether texts begin with a token that the model wants there (`add_special`).
    pub fn adds_first(&self) -> bool {
        self.ends.first.is_some()
    }

    /// Returns the token that the model expects at the start of a text (`add_special`), such as BOS.
    pub fn first_token(&self) -> Option<u32> {
        let encode = Encode { add_special: true, parse_special: false };
        if self.adds_first() { self.encode("", encode).first().copied() } else { None }
    }

    /// Whether the text of a token is found before all other rules.
    #[cfg(feature = "huggingface")]
    pub(crate) fn is_special(&self, id: u32) -> bool {
        matches!(self.types.get(id as usize), Some(TokenType::Control | TokenType::UserDefined))
    }

    /// Whether this is the token for what has no other.
    #[cfg(feature = "huggingface")]
    pub(crate) fn is_unknown(&self, id: u32) -> bool {
        self.types.get(id as usize) == Some(&TokenType::Unknown)
    }

    /// Whether a token exists, and is text or wanted nevertheless.
    pub(crate) fn is_shown(&self, id: u32, how: Decode) -> bool {
        self.types.get(id as usize).is_some_and(|kind| how.special || !kind.is_special())
    }

    /// Appends the bytes of a token.
    pub(crate) fn append(&self, id: u32, at_start: bool, out: &mut Vec<u8>) {
        let text = self.texts.get(id).unwrap_or_default();
        let plain = self.types.get(id as usize).is_some_and(|kind| match kind {
            TokenType::UserDefined => !is_run_of_spaces(text),
            kind => kind.is_special(),
        });
        if plain {
            out.extend_from_slice(text);
        } else {
            self.model.decode(id, at_start, out);
        }
    }
}
