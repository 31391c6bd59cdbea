//! Runs a `tokenizer.json` with the `tokenizers` crate of Hugging Face.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gguf::{Error, Finding, Metadata};
use gguf_models::token::{byte_of, byte_of_token};
use tokenizers::{
    AddedToken, DecoderWrapper, NormalizedString, Normalizer, OffsetReferential, OffsetType,
    PreTokenizedString, PreTokenizer,
};

use crate::error::{fails, invalid};
use crate::model::to_spaces;
use crate::options::{DecodeOptions, EncodeOptions};

/// Key that holds a whole `tokenizer.json`.
const KEY: &str = "tokenizer.huggingface.json";

/// A tokenizer in Hugging Face's format: the reference implementation for
/// [`Tokenizer`](crate::Tokenizer), and slower.
///
/// ```
/// use gguf_tokenizer::{DecodeOptions, EncodeOptions, HuggingFace};
/// let json = r#"{
///     "version": "1.0", "added_tokens": [], "post_processor": null, "decoder": null,
///     "normalizer": { "type": "Lowercase" }, "pre_tokenizer": { "type": "Whitespace" },
///     "model": { "type": "WordLevel", "vocab": { "in": 0, "the": 1 }, "unk_token": "in" }
/// }"#;
/// let tokenizer = HuggingFace::from_json(json.as_bytes())?;
/// assert_eq!(tokenizer.encode("In THE", EncodeOptions::default())?, [0, 1]);
/// assert_eq!(tokenizer.decode(&[0, 1], DecodeOptions::default())?, "in the");
/// # Ok::<(), gguf::Error>(())
/// ```
pub struct HuggingFace {
    /// Parses special tokens in the text.
    parsing: tokenizers::Tokenizer,
    /// Encodes the texts of special tokens as plain text.
    plain: tokenizers::Tokenizer,
}

impl HuggingFace {
    /// Reads the tokenizer in a model file; `None` if there is none.
    ///
    /// # Errors
    /// If the value of `tokenizer.huggingface.json` is not a valid tokenizer.
    pub fn from_metadata(metadata: &Metadata) -> Result<Option<Self>, Error> {
        let Some(value) = metadata.get(KEY) else { return Ok(None) };
        let json = value.as_str().ok_or_else(|| invalid(KEY, "is not a string"))?;
        Self::parse(json.as_bytes()).map_err(|cause| invalid(KEY, cause)).map(Some)
    }

    /// Parses the content of a `tokenizer.json`.
    ///
    /// # Errors
    /// If the content is invalid.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        Self::parse(json).map_err(|cause| {
            let fault = format!("the `tokenizers` library rejects it: {cause}");
            let help = "check that it is a complete tokenizer.json of a current version";
            Finding::error("tokenizer-invalid", fault).help(help).into()
        })
    }

    fn parse(json: &[u8]) -> Result<Self, String> {
        let read = || -> tokenizers::Result<_> {
            let mut tokenizer = tokenizers::Tokenizer::from_bytes(json)?;
            // Truncation and padding are settings for training.
            tokenizer.with_truncation(None)?;
            tokenizer.with_padding(None);
            Ok(tokenizer)
        };
        let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(json).is_ok();
        let parsing = catch_panic(read)
            .map_err(|cause| if is_json() { cause } else { "it is not JSON".to_owned() })?;
        let mut plain = parsing.clone();
        plain.set_encode_special_tokens(true);
        Ok(Self { parsing, plain })
    }

    /// Encodes a text.
    ///
    /// # Errors
    /// If the vocabulary lacks a token that the text needs, such as the unknown token.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>, Error> {
        let tokenizer = if options.parse_special { &self.parsing } else { &self.plain };
        let encoding = catch_panic(|| tokenizer.encode_fast(text, options.add_special));
        Ok(encoding.map_err(|cause| fails(&cause))?.get_ids().to_vec())
    }

    /// Decodes ids.
    ///
    /// # Errors
    /// If the rules of the tokenizer fail on them.
    pub fn decode(&self, ids: &[u32], options: DecodeOptions) -> Result<String, Error> {
        catch_panic(|| self.parsing.decode(ids, !options.special)).map_err(|cause| fails(&cause))
    }

    /// Returns the text of a token as in the file; `None` if the id does not exist.
    pub fn token_text(&self, id: u32) -> Option<String> {
        self.parsing.id_to_token(id)
    }

    /// Returns the bytes of a token within a text; `None` if the id does not exist.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let text = self.token_text(id)?;
        if self.is_added(id) {
            return Some(text.into());
        }
        let decoders = match self.parsing.get_decoder() {
            Some(DecoderWrapper::Sequence(all)) => all.get_decoders(),
            decoder => decoder.map(std::slice::from_ref).unwrap_or_default(),
        };
        let is_byte_level = decoders.iter().any(|d| matches!(d, DecoderWrapper::ByteLevel(_)));
        let bytes: Option<Vec<u8>> =
            text.chars().map(byte_of).collect::<Option<_>>().filter(|_| is_byte_level);
        let byte = byte_of_token(text.as_bytes())
            .filter(|_| decoders.iter().any(|d| matches!(d, DecoderWrapper::ByteFallback(_))));
        Some(bytes.or(byte.map(|byte| vec![byte])).unwrap_or_else(|| {
            let mut plain = Vec::new();
            to_spaces(text.as_bytes(), &mut plain);
            plain
        }))
    }

    /// Whether a token is an added token, which is matched before all other rules.
    pub(crate) fn is_added(&self, id: u32) -> bool {
        self.parsing.get_added_vocabulary().simple_id_to_token(id).is_some()
    }

    /// Returns the added tokens with their ids, in order of the ids.
    pub(crate) fn added_tokens(&self) -> Vec<(u32, AddedToken)> {
        let mut tokens: Vec<_> = self.parsing.get_added_tokens_decoder().into_iter().collect();
        tokens.sort_by_key(|(id, _)| *id);
        tokens
    }

    /// Whether a normalizer rewrites texts.
    pub(crate) fn has_normalizer(&self) -> bool {
        self.parsing.get_normalizer().is_some()
    }

    /// Normalizes a text.
    pub(crate) fn normalize(&self, text: &str) -> Result<String, Error> {
        let mut normalized = NormalizedString::from(text);
        if let Some(normalizer) = self.parsing.get_normalizer() {
            catch_panic(|| normalizer.normalize(&mut normalized)).map_err(|cause| fails(&cause))?;
        }
        Ok(normalized.get().to_owned())
    }

    /// Splits the normalized text with the pre-tokenizer; returns byte ranges.
    pub(crate) fn words(&self, normalized: &str) -> Result<Vec<(usize, usize)>, Error> {
        let mut words = PreTokenizedString::from(normalized);
        if let Some(pre_tokenizer) = self.parsing.get_pre_tokenizer() {
            catch_panic(|| pre_tokenizer.pre_tokenize(&mut words))
                .map_err(|cause| fails(&cause))?;
        }
        let splits = words.get_splits(OffsetReferential::Original, OffsetType::Byte);
        Ok(splits.into_iter().map(|(_, range, _)| range).collect())
    }
}

/// Runs the library, which panics on inconsistent files: a merge that gives a longer text than any
/// token, or a character map that points outside itself.
fn catch_panic<T>(run: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => done.map_err(|cause| cause.to_string()),
        Err(_) => Err("the tokenizer is inconsistent: the library that runs it panicked".into()),
    }
}
