//! Tokenizers of models, checkpoints and `tokenizer.json` files.

use std::path::Path;

use gguf::{Finding, Metadata};
use gguf_convert::hf;
use gguf_tokenizer::{EncodeOptions, HuggingFace, Tokenizer, TokenizerOptions};
use serde_json::Value as Json;

use crate::{Error, open as open_model};

/// A tokenizer.
pub enum Encoder {
    /// The tokenizer of the `tokenizer.ggml` keys.
    Ggml(Box<Tokenizer>),
    /// An embedded `tokenizer.json`, run by the `tokenizers` library.
    HuggingFace(Box<HuggingFace>),
}

impl Encoder {
    /// Opens the tokenizer in the key `tokenizer.huggingface.json` of a model.
    ///
    /// # Errors
    /// `tokenizer-missing` without that key; if the tokenizer is invalid.
    pub fn huggingface(source: &str) -> Result<Self, Error> {
        let opened = open_model(source)?;
        let found = HuggingFace::from_metadata(opened.model().metadata())?;
        let found = found.ok_or_else(|| {
            let finding = Finding::error("tokenizer-missing", "has no tokenizer.huggingface.json");
            Error::from(finding.help("use the tokenizer of the other keys"))
                .in_file(source.as_ref())
        })?;
        Ok(Self::HuggingFace(Box::new(found)))
    }

    /// Encodes texts, on all threads if the tokenizer supports it.
    ///
    /// # Errors
    /// If the `tokenizers` library fails on a text.
    pub fn encode_batch(
        &self,
        texts: &[String],
        options: EncodeOptions,
    ) -> Result<Vec<Vec<u32>>, Error> {
        match self {
            Self::Ggml(tokenizer) => Ok(tokenizer.encode_batch(texts, options)),
            Self::HuggingFace(tokenizer) => {
                texts.iter().map(|text| tokenizer.encode(text, options)).collect()
            }
        }
    }

    /// Returns the bytes of a token, or its text in a `tokenizer.json`.
    pub fn token_bytes(&self, id: u32) -> Vec<u8> {
        match self {
            Self::Ggml(tokenizer) => tokenizer.token_bytes(id).unwrap_or_default(),
            Self::HuggingFace(tokenizer) => tokenizer.token_text(id).unwrap_or_default().into(),
        }
    }
}

/// Opens the tokenizer of the model, checkpoint directory or `tokenizer.json` that `source` names. Returns it with notes
/// for the user.
///
/// # Errors
/// If there is no tokenizer, or it is invalid.
pub fn open(source: &str, options: TokenizerOptions) -> Result<(Tokenizer, Vec<String>), Error> {
    let path = Path::new(source);
    let folder = match path.file_name() {
        Some(name) if name == "tokenizer.json" => {
            // The parent of a bare file name is the empty path.
            Some(path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new(".")))
        }
        _ => Some(path).filter(|path| is_checkpoint(path)),
    };
    match folder {
        Some(dir) => {
            let options = TokenizerOptions { normalize: is_normalized(dir), ..options };
            let (metadata, notes) = checkpoint_metadata(dir)?;
            Ok((Tokenizer::from_metadata(&metadata, options)?, notes))
        }
        None => {
            let opened = open_model(source)?;
            Ok((Tokenizer::from_metadata(opened.model().metadata(), options)?, Vec::new()))
        }
    }
}

fn is_checkpoint(path: &Path) -> bool {
    ["tokenizer.json", "tokenizer.model", "vocab.json"].iter().any(|name| path.join(name).is_file())
}

/// Returns the tokenizer keys that a conversion of the checkpoint writes.
fn checkpoint_metadata(dir: &Path) -> Result<(Metadata, Vec<String>), Error> {
    let converted = hf::vocabulary(dir)?;
    let mut metadata = converted.metadata;
    // Implied by the model family; the converter sets it, too.
    if json(&dir.join("config.json"))["model_type"].as_str().is_some_and(|t| t.starts_with("gemma"))
    {
        metadata.set("tokenizer.ggml.add_space_prefix", false);
    }
    Ok((metadata, converted.notes))
}

/// Whether the tokenizer normalizes to NFC; `None` without a `tokenizer.json`.
fn is_normalized(dir: &Path) -> Option<bool> {
    let tokenizer = json(&dir.join("tokenizer.json"));
    let normalizer = tokenizer.get("normalizer")?;
    let parts = normalizer["normalizers"].as_array().into_iter().flatten();
    Some(parts.chain([normalizer]).any(|part| part["type"] == "NFC"))
}

/// Reads a JSON file; a missing or invalid file is null.
fn json(path: &Path) -> Json {
    let text = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
