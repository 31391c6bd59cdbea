//! Tokenizers of models, checkpoints and `tokenizer.json` files.

use std::path::{Path, PathBuf};

use gguf::{Finding, Metadata};
use gguf_convert::hf;
use gguf_tokenizer::diff::TokenizerDiff;
use gguf_tokenizer::{Compat, EncodeOptions, HuggingFace, Tokenizer, TokenizerOptions};
use rayon::prelude::*;
use serde_json::Value as Json;

use crate::{Error, open as open_model};

/// A tokenizer.
pub enum Encoder {
    /// The tokenizer of the `tokenizer.ggml` keys.
    Ggml(Box<Tokenizer>),
    /// A `tokenizer.json`, run by the `tokenizers` library.
    HuggingFace(Box<HuggingFace>),
}

impl Encoder {
    /// Opens the tokenizer of the model, checkpoint directory or `tokenizer.json` that `source` names. Returns it with
    /// notes for the user.
    ///
    /// The `tokenizers` library runs a `tokenizer.json`, because a conversion can lose rules for which GGUF has no key.
    /// With [`Compat::LlamaCpp`], the tokenizer is that of a converted file.
    ///
    /// # Errors
    /// If there is no tokenizer, or it is invalid.
    pub fn open(source: &str, options: TokenizerOptions) -> Result<(Self, Vec<String>), Error> {
        let json = Origin::of(source).json().filter(|_| options.compat == Compat::Original);
        if let Some(path) = json {
            let tokenizer = HuggingFace::from_json(&read(&path)?);
            let tokenizer = tokenizer.map_err(|error| error.in_file(&path))?;
            return Ok((Self::HuggingFace(Box::new(tokenizer)), Vec::new()));
        }
        let (tokenizer, notes) = open(source, options)?;
        Ok((Self::Ggml(Box::new(tokenizer)), notes))
    }

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

    /// Encodes texts, on all threads.
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
                texts.par_iter().map(|text| tokenizer.encode(text, options)).collect()
            }
        }
    }

    /// Returns the bytes of a token within a text; no bytes if the id does not exist.
    pub fn token_bytes(&self, id: u32) -> Vec<u8> {
        match self {
            Self::Ggml(tokenizer) => tokenizer.token_bytes(id),
            Self::HuggingFace(tokenizer) => tokenizer.token_bytes(id),
        }
        .unwrap_or_default()
    }
}

/// Opens the tokenizer of the model, checkpoint directory or `tokenizer.json` that `source` names, as a conversion
/// writes it. Returns it with notes for the user.
///
/// # Errors
/// If there is no tokenizer, or it is invalid.
pub fn open(source: &str, options: TokenizerOptions) -> Result<(Tokenizer, Vec<String>), Error> {
    let origin = Origin::of(source);
    let converted = match &origin {
        Origin::Model => {
            let opened = open_model(source)?;
            let tokenizer = Tokenizer::from_metadata(opened.model().metadata(), options)?;
            return Ok((tokenizer, Vec::new()));
        }
        Origin::Directory(dir) => hf::vocabulary(dir)?,
        Origin::Json(path) => hf::vocabulary_of_json(path)?,
    };
    let normalize = origin.json().and_then(|path| is_normalized(&path));
    let options = TokenizerOptions { normalize, ..options };
    let tokenizer = Tokenizer::from_metadata(&converted.metadata, options)?;
    Ok((tokenizer, converted.notes))
}

/// Compares the tokenizer keys of a converted file with the `tokenizer.json` in the checkpoint directory. Returns notes
/// about the texts that get other ids, because GGUF has no place for a rule.
pub(crate) fn conversion_notes(dir: &Path, metadata: &Metadata) -> Result<Vec<String>, Error> {
    let path = dir.join(TOKENIZER_JSON);
    let has_tokens = metadata.get("tokenizer.ggml.tokens").is_some();
    // The prompts of Whisper depend on the language, and are ids.
    if !has_tokens || metadata.architecture() == Some("whisper") || !path.is_file() {
        return Ok(Vec::new());
    }
    let Ok(ours) = Tokenizer::from_metadata(metadata, TokenizerOptions::default()) else {
        // Loaders of the file report it, and it may concern only this program.
        return Ok(Vec::new());
    };
    let lost = HuggingFace::from_json(&read(&path)?)
        .and_then(|theirs| TokenizerDiff { ours: &ours, theirs: &theirs }.lost_rules());
    Ok(match lost {
        Ok(lost) => lost.iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("cannot compare the ids with those of tokenizer.json: {error}")],
    })
}

/// Origin of a tokenizer.
enum Origin {
    /// A model file.
    Model,
    /// A checkpoint directory.
    Directory(PathBuf),
    /// A `tokenizer.json` under another name, without the files of its checkpoint.
    Json(PathBuf),
}

impl Origin {
    fn of(source: &str) -> Self {
        let path = Path::new(source);
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        match path.parent() {
            // The parent of a bare file name is the empty path.
            Some(dir) if path.file_name().is_some_and(|name| name == TOKENIZER_JSON) => {
                Self::Directory(Path::new(".").join(dir))
            }
            _ if is_json && path.is_file() => Self::Json(path.to_owned()),
            _ if is_checkpoint(path) => Self::Directory(path.to_owned()),
            _ => Self::Model,
        }
    }

    /// Returns the path of the `tokenizer.json`, if there is one.
    fn json(&self) -> Option<PathBuf> {
        match self {
            Self::Model => None,
            Self::Directory(dir) => Some(dir.join(TOKENIZER_JSON)).filter(|path| path.is_file()),
            Self::Json(path) => Some(path.clone()),
        }
    }
}

const TOKENIZER_JSON: &str = "tokenizer.json";

fn is_checkpoint(path: &Path) -> bool {
    [TOKENIZER_JSON, "tokenizer.model", "vocab.json"].iter().any(|name| path.join(name).is_file())
}

/// Whether a `tokenizer.json` normalizes text to NFC; `None` if it has no `normalizer`.
fn is_normalized(path: &Path) -> Option<bool> {
    let tokenizer: Json = serde_json::from_slice(&read(path).ok()?).ok()?;
    let normalizer = tokenizer.get("normalizer")?;
    let parts = normalizer["normalizers"].as_array().into_iter().flatten();
    Some(parts.chain([normalizer]).any(|part| part["type"] == "NFC"))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|fault| Error::read(path, fault))
}
