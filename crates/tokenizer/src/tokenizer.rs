//! The tokenizer of a model.

use std::borrow::Cow;
use std::sync::OnceLock;

use gguf::{Error, Metadata};
use gguf_models::token::TokenType;
use rayon::prelude::*;

use crate::model::{self, Model, rwkv};
use crate::options::{DecodeOptions, EncodeOptions, TokenizerOptions};
use crate::special::{BosEos, EndKeys, Fragment, Splitter, is_run_of_spaces};
use crate::token_table::TokenTable;
use crate::trace::{Piece, Trace};
use crate::vocabulary::Vocabulary;

/// Encodes text to token ids and decodes ids.
///
/// It owns its data (the token texts in one buffer) and can be shared by threads.
///
/// ```
/// use gguf::{Array, Metadata};
/// use gguf_tokenizer::{DecodeOptions, EncodeOptions, Tokenizer, TokenizerOptions};
/// let mut metadata = Metadata::new();
/// metadata.set("tokenizer.ggml.model", "llama");
/// metadata.set("tokenizer.ggml.tokens", Array::from_strings(["<unk>", "a", "b", "ab", "\u{2581}"]));
/// metadata.set("tokenizer.ggml.scores", Array::from(&[0f32, -2.0, -3.0, -1.0, -4.0][..]));
/// metadata.set("tokenizer.ggml.add_bos_token", false);
/// let tokenizer = Tokenizer::from_metadata(&metadata, TokenizerOptions::default())?;
/// let ids = tokenizer.encode("ab a", EncodeOptions::default());
/// assert_eq!(ids, [4, 3, 4, 1]);
/// assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), b"ab a");
/// # Ok::<(), gguf::Error>(())
/// ```
pub struct Tokenizer {
    model: Box<dyn Model>,
    splitter: Splitter,
    bos_eos: BosEos,
    end_keys: EndKeys,
    /// Found on first use, because most callers generate nothing.
    end_of_generation: OnceLock<Vec<u32>>,
    /// Texts of all tokens, as in the file.
    texts: TokenTable,
    types: Vec<TokenType>,
}

/// Mark within a protected control token: a code point for internal use, which no text contains.
const PROTECTION: char = '\u{fdd0}';

impl Tokenizer {
    /// Reads the `tokenizer.ggml.*` keys of a model.
    ///
    /// # Errors
    /// If keys are missing or inconsistent, or the tokenizer model is not supported.
    pub fn from_metadata(metadata: &Metadata, options: TokenizerOptions) -> Result<Self, Error> {
        let with_tokens = rwkv::with_tokens(metadata)?;
        let vocabulary = Vocabulary::read(with_tokens.as_ref().unwrap_or(metadata))?;
        Ok(Self {
            model: model::read(&vocabulary, options)?,
            splitter: Splitter::new(&vocabulary, options),
            bos_eos: BosEos::read(&vocabulary)?,
            end_keys: EndKeys::read(&vocabulary),
            end_of_generation: OnceLock::new(),
            texts: vocabulary.tokens.iter().collect(),
            types: vocabulary.types,
        })
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Returns a text in which a mark breaks each control token. [`Tokenizer::encode_protected`] removes the marks and
    /// reads the tokens as ordinary text: so a message of a user becomes no control token of the prompt around it.
    pub fn protect(&self, text: &str) -> String {
        let mut protected = String::with_capacity(text.len());
        let mut written = 0;
        let text = text.replace(PROTECTION, "");
        for start in self.splitter.control_starts(&text) {
            let end = start + text[start..].chars().next().map_or(0, char::len_utf8);
            protected.push_str(&text[written..end]);
            protected.push(PROTECTION);
            written = end;
        }
        protected.push_str(&text[written..]);
        protected
    }

    /// Encodes a text with parts from [`Tokenizer::protect`].
    pub fn encode_protected(&self, text: &str, options: EncodeOptions) -> Vec<u32> {
        self.encode_fragments(text, options, &|fragment| match fragment.contains(PROTECTION) {
            true => fragment.replace(PROTECTION, "").into(),
            false => fragment.into(),
        })
    }

    /// Encodes a text.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Vec<u32> {
        self.encode_fragments(text, options, &|fragment| fragment.into())
    }

    /// Encodes a text. `read` returns the text of a fragment that is not a special token.
    fn encode_fragments(
        &self,
        text: &str,
        options: EncodeOptions,
        read: &dyn for<'t> Fn(&'t str) -> Cow<'t, str>,
    ) -> Vec<u32> {
        // English text has about four bytes per token.
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        if options.add_special {
            ids.extend(self.bos_eos.first);
        }
        let mut at_start = true;
        self.splitter.split(text, options.parse_special, &mut |fragment| match fragment {
            Fragment::Text(text) => {
                self.model.encode(&read(text), at_start, &mut ids);
                at_start = false;
            }
            Fragment::Token(id) => ids.push(id),
        });
        if options.add_special {
            ids.extend(self.bos_eos.last);
        }
        ids
    }

    /// Encodes a text and traces each step. For short texts: it takes many times as long as
    /// [`Tokenizer::encode`], and more memory than the text.
    pub fn trace(&self, text: &str, options: EncodeOptions) -> Trace {
        let mut trace = Trace::default();
        let special = |id: u32, trace: &mut Trace| {
            let text = String::from_utf8_lossy(self.texts.get(id).unwrap_or_default()).into_owned();
            let at = trace.ids.len();
            trace.ids.push(id);
            trace.pieces.push(Piece { text, special: true, ids: at..at + 1, words: None });
        };
        if let Some(id) = self.bos_eos.first.filter(|_| options.add_special) {
            special(id, &mut trace);
        }
        let mut at_start = true;
        self.splitter.split(text, options.parse_special, &mut |fragment| match fragment {
            Fragment::Text(text) => {
                let before = trace.ids.len();
                self.model.encode(text, at_start, &mut trace.ids);
                let (ids, words) = (before..trace.ids.len(), self.model.trace(text));
                trace.pieces.push(Piece { text: text.to_owned(), special: false, ids, words });
                at_start = false;
            }
            Fragment::Token(id) => special(id, &mut trace),
        });
        if let Some(id) = self.bos_eos.last.filter(|_| options.add_special) {
            special(id, &mut trace);
        }
        trace
    }

    /// Encodes each text, on all cores.
    pub fn encode_batch<S: AsRef<str> + Sync>(
        &self,
        texts: &[S],
        options: EncodeOptions,
    ) -> Vec<Vec<u32>> {
        texts.par_iter().map(|text| self.encode(text.as_ref(), options)).collect()
    }

    /// Returns the bytes of a token within a text, including those of control tokens; `None` if the
    /// id does not exist.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        ((id as usize) < self.len()).then(|| {
            let mut bytes = Vec::new();
            self.append(id, false, &mut bytes);
            bytes
        })
    }

    /// Returns the type of a token; `None` if the id does not exist.
    pub fn token_type(&self, id: u32) -> Option<TokenType> {
        self.types.get(id as usize).copied()
    }

    /// Returns the text of a token as in the file; `None` if the id does not exist.
    pub fn token_text(&self, id: u32) -> Option<&[u8]> {
        self.texts.get(id)
    }

    /// Whether encoding adds a BOS token (with `add_special`).
    pub fn adds_bos(&self) -> bool {
        self.bos_eos.first.is_some()
    }

    /// Returns the token that the model expects at the start of a text (`add_special`), such as BOS.
    pub fn first_token(&self) -> Option<u32> {
        let options = EncodeOptions { add_special: true, parse_special: false };
        if self.adds_bos() { self.encode("", options).first().copied() } else { None }
    }

    /// Returns the token that encoding adds at the end of a text (with `add_special`), such as EOS.
    pub fn last_token(&self) -> Option<u32> {
        self.bos_eos.last
    }

    /// Returns the tokens that end a generation, in order of their ids: the set of llama.cpp (`special_eog_ids`). It
    /// has EOS, EOT and EOM, tokens with well-known texts such as `<|im_end|>`, and the padding, repository and file
    /// separators of FIM.
    pub fn end_of_generation(&self) -> &[u32] {
        self.end_of_generation.get_or_init(|| self.end_keys.tokens(self.texts.iter()))
    }

    /// Whether a token is matched in the text before all other rules.
    #[cfg(feature = "huggingface")]
    pub(crate) fn is_special(&self, id: u32) -> bool {
        matches!(self.types.get(id as usize), Some(TokenType::Control | TokenType::UserDefined))
    }

    /// Whether this is the unknown token.
    #[cfg(feature = "huggingface")]
    pub(crate) fn is_unknown(&self, id: u32) -> bool {
        self.types.get(id as usize) == Some(&TokenType::Unknown)
    }

    /// Whether a token exists and is decoded with these options.
    pub(crate) fn is_shown(&self, id: u32, options: DecodeOptions) -> bool {
        self.types.get(id as usize).is_some_and(|kind| options.special || !kind.is_special())
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
