//! Tokenizers from wherever the user says: a model, or a folder or file of Hugging Face.

use std::path::Path;

use gguf::{Finding, Metadata};
use gguf_convert::hf;
use gguf_tokenizer::{Encode, HuggingFace, Options, Tokenizer};
use serde_json::Value as Json;

use crate::{Error, open as open_model};

/// The ids of a text, with what the model wants around it; `parse_special`: the texts of control tokens are these tokens.
pub(crate) fn encode(tokenizer: &Tokenizer, text: &str, parse_special: bool) -> Vec<u32> {
    tokenizer.encode(text, Encode { add_special: true, parse_special })
}

/// The token that a model wants at the beginning.
pub(crate) fn first(tokenizer: &Tokenizer) -> Option<u32> {
    if tokenizer.adds_first() { encode(tokenizer, "", false).first().copied() } else { None }
}

/// What turns text into ids.
pub enum Encoder {
    /// The tokenizer of the `tokenizer.ggml` keys.
    Ours(Box<Tokenizer>),
    /// The `tokenizer.json` that the file carries, run by the library of its authors.
    HuggingFace(Box<HuggingFace>),
}

impl Encoder {
    /// The one that the model carries as `tokenizer.huggingface.json`.
    ///
    /// # Errors
    /// If it carries none, or one that is at fault.
    pub fn huggingface(source: &str) -> Result<Self, Error> {
        let opened = open_model(source)?;
        let found = HuggingFace::from_metadata(opened.model().metadata())?;
        let found = found.ok_or_else(|| {
            let finding = Finding::error("tokenizer-missing", "has no tokenizer.huggingface.json");
            Error::from(finding.help("go without it")).in_file(source.as_ref())
        })?;
        Ok(Self::HuggingFace(Box::new(found)))
    }

    /// The ids of each text, on all threads if the tokenizer can.
    ///
    /// # Errors
    /// If the tokenizer of Hugging Face fails on a text.
    pub fn encode_batch(&self, texts: &[String], how: Encode) -> Result<Vec<Vec<u32>>, Error> {
        match self {
            Self::Ours(tokenizer) => Ok(tokenizer.encode_batch(texts, how)),
            Self::HuggingFace(tokenizer) => {
                texts.iter().map(|text| tokenizer.encode(text, how)).collect()
            }
        }
    }

    /// The bytes that a token stands for, or, of Hugging Face's, the text it goes by.
    pub fn token_bytes(&self, id: u32) -> Vec<u8> {
        match self {
            Self::Ours(tokenizer) => tokenizer.token_bytes(id).unwrap_or_default(),
            Self::HuggingFace(tokenizer) => tokenizer.token_text(id).unwrap_or_default().into(),
        }
    }
}

/// The tokenizer of the model, directory or `tokenizer.json` that `source` names, and what the user
/// should know.
///
/// # Errors
/// If there is none, or it is at fault.
pub fn open(source: &str, options: Options) -> Result<(Tokenizer, Vec<String>), Error> {
    let path = Path::new(source);
    let folder = match path.file_name() {
        Some(name) if name == "tokenizer.json" => {
            // Of a bare file name the parent is the empty path.
            Some(path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new(".")))
        }
        _ => Some(path).filter(|path| is_checkpoint(path)),
    };
    match folder {
        Some(dir) => {
            let options = Options { normalize: is_normalized(dir), ..options };
            let (metadata, notes) = of_checkpoint(dir)?;
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

/// The keys that a conversion would write about the tokenizer.
fn of_checkpoint(dir: &Path) -> Result<(Metadata, Vec<String>), Error> {
    let converted = hf::vocabulary(dir)?;
    let mut metadata = converted.metadata;
    // Its converter knows what a vocabulary of this family does not say.
    if json(&dir.join("config.json"))["model_type"].as_str().is_some_and(|t| t.starts_with("gemma"))
    {
        metadata.set("tokenizer.ggml.add_space_prefix", false);
    }
    Ok((metadata, converted.notes))
}

/// Whether the text is brought to form C first; `None` if there is no `tokenizer.json` to say so.
fn is_normalized(dir: &Path) -> Option<bool> {
    let tokenizer = json(&dir.join("tokenizer.json"));
    let normalizer = tokenizer.get("normalizer")?;
    let parts = normalizer["normalizers"].as_array().into_iter().flatten();
    Some(parts.chain([normalizer]).any(|part| part["type"] == "NFC"))
}

/// The content of a file that can be missing.
fn json(path: &Path) -> Json {
    let text = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
