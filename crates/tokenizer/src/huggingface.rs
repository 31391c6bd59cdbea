//! `tokenizer.json` of Hugging Face, run by the library that it was written by.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gguf::{Error, Metadata};
use tokenizers::{
    NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
};

use crate::error::{fails, invalid};
use crate::options::{Decode, Encode};

/// Key of the whole `tokenizer.json`.
const KEY: &str = "tokenizer.huggingface.json";

/// A tokenizer as Hugging Face publishes it: slower than [`Tokenizer`](crate::Tokenizer), and the
/// measure of it.
///
/// ```
/// use gguf_tokenizer::{Decode, Encode, HuggingFace};
/// let json = r#"{
///     "version": "1.0", "added_tokens": [], "post_processor": null, "decoder": null,
///     "normalizer": { "type": "Lowercase" }, "pre_tokenizer": { "type": "Whitespace" },
///     "model": { "type": "WordLevel", "vocab": { "in": 0, "the": 1 }, "unk_token": "in" }
/// }"#;
/// let tokenizer = HuggingFace::from_json(json.as_bytes())?;
/// assert_eq!(tokenizer.encode("In THE", Encode::default())?, [0, 1]);
/// assert_eq!(tokenizer.decode(&[0, 1], Decode::default())?, "in the");
/// # Ok::<(), gguf::Error>(())
/// ```
pub struct HuggingFace {
    /// Takes the texts of special tokens for these.
    parsing: tokenizers::Tokenizer,
    /// Takes them for text.
    plain: tokenizers::Tokenizer,
}

impl HuggingFace {
    /// The tokenizer inside a model file; `None` if it has none.
    ///
    /// # Errors
    /// If the value of `tokenizer.huggingface.json` is not such a tokenizer.
    pub fn from_metadata(metadata: &Metadata) -> Result<Option<Self>, Error> {
        let Some(value) = metadata.get(KEY) else { return Ok(None) };
        let json = value.as_str().ok_or_else(|| invalid(KEY, "is not a text"))?;
        Self::from_json(json.as_bytes()).map(Some)
    }

    /// The tokenizer of a file `tokenizer.json`, by its content.
    ///
    /// # Errors
    /// If it is not such a file.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        let read = || -> tokenizers::Result<_> {
            let mut tokenizer = tokenizers::Tokenizer::from_bytes(json)?;
            // What training wanted; here every text is taken as it is.
            tokenizer.with_truncation(None)?;
            tokenizer.with_padding(None);
            Ok(tokenizer)
        };
        let parsing = guarded(read).map_err(|cause| invalid(KEY, cause))?;
        let mut plain = parsing.clone();
        plain.set_encode_special_tokens(true);
        Ok(Self { parsing, plain })
    }

    /// The ids of a text.
    ///
    /// # Errors
    /// If the vocabulary lacks what the text needs, such as an unknown token.
    pub fn encode(&self, text: &str, how: Encode) -> Result<Vec<u32>, Error> {
        let tokenizer = if how.parse_special { &self.parsing } else { &self.plain };
        let encoding = guarded(|| tokenizer.encode_fast(text, how.add_special));
        Ok(encoding.map_err(|cause| fails(&cause))?.get_ids().to_vec())
    }

    /// The text of ids.
    ///
    /// # Errors
    /// If the tokenizer's own rules fail on them.
    pub fn decode(&self, ids: &[u32], how: Decode) -> Result<String, Error> {
        guarded(|| self.parsing.decode(ids, !how.special)).map_err(|cause| fails(&cause))
    }

    /// The text of a token as the file has it; `None` if there is no such token.
    pub fn token_text(&self, id: u32) -> Option<String> {
        self.parsing.id_to_token(id)
    }

    /// Whether a token was added to the vocabulary, and so is found before all other rules.
    pub(crate) fn is_added(&self, id: u32) -> bool {
        self.parsing.get_added_vocabulary().simple_id_to_token(id).is_some()
    }

    /// The texts of the tokens that were added to the vocabulary.
    pub(crate) fn added_tokens(&self) -> Vec<String> {
        let mut tokens: Vec<_> = self.parsing.get_added_tokens_decoder().into_iter().collect();
        tokens.sort_by_key(|(id, _)| *id);
        tokens.into_iter().map(|(_, token)| token.content).collect()
    }

    /// The text after the normalizer.
    pub(crate) fn normalize(&self, text: &str) -> Result<String, Error> {
        let mut normalized = NormalizedString::from(text);
        if let Some(normalizer) = self.parsing.get_normalizer() {
            guarded(|| normalizer.normalize(&mut normalized)).map_err(|cause| fails(&cause))?;
        }
        Ok(normalized.get().to_owned())
    }

    /// Where the pre-tokenizer cuts the normalized text, in bytes of that.
    pub(crate) fn words(&self, normalized: &str) -> Result<Vec<(usize, usize)>, Error> {
        let mut words = PreTokenizedString::from(normalized);
        if let Some(pre_tokenizer) = self.parsing.get_pre_tokenizer() {
            guarded(|| pre_tokenizer.pre_tokenize(&mut words)).map_err(|cause| fails(&cause))?;
        }
        let splits = words.get_splits(OffsetReferential::Original, OffsetType::Byte);
        Ok(splits.into_iter().map(|(_, place, _)| place).collect())
    }
}

/// Runs the library, which panics where a file contradicts itself: a merge that makes a longer text
/// than any token has, a map of characters that points outside of itself.
fn guarded<T>(run: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => done.map_err(|cause| cause.to_string()),
        Err(_) => Err("the tokenizer contradicts itself: the library that runs it panicked".into()),
    }
}
