//! Tokenizers from wherever the user says: a model, or a folder or file of Hugging Face.

use std::path::Path;

use gguf::Metadata;
use gguf_convert::hf;
use gguf_tokenizer::{Encode, HuggingFace, Options, Tokenizer};
use serde_json::Value as Json;

use crate::commands::print_notes;
use crate::failure::Failure;
use crate::opened::Opened;

/// Whom to follow where the model's own tokenizer and llama.cpp differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Compat {
    /// The tokenizer that the model was trained with.
    Own,
    /// llama.cpp.
    #[value(name = "llama.cpp", alias = "official")]
    LlamaCpp,
}

impl From<Compat> for Options {
    fn from(compat: Compat) -> Self {
        Self {
            compat: match compat {
                Compat::Own => gguf_tokenizer::Compat::Own,
                Compat::LlamaCpp => gguf_tokenizer::Compat::LlamaCpp,
            },
            normalize: None,
        }
    }
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
    pub fn huggingface(source: &str) -> Result<Self, Failure> {
        let opened = Opened::open(source)?;
        let found = HuggingFace::from_metadata(opened.model().metadata())?;
        let found = found.ok_or_else(|| {
            Failure::Input(format!("{source} has no tokenizer.huggingface.json; go without it"))
        })?;
        Ok(Self::HuggingFace(Box::new(found)))
    }

    /// The ids of each text, on all cores if the tokenizer can.
    pub fn encode_batch(&self, texts: &[String], how: Encode) -> Result<Vec<Vec<u32>>, Failure> {
        match self {
            Self::Ours(tokenizer) => Ok(tokenizer.encode_batch(texts, how)),
            Self::HuggingFace(tokenizer) => {
                texts.iter().map(|text| Ok(tokenizer.encode(text, how)?)).collect()
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

/// The tokenizer of the model, directory or `tokenizer.json` that `source` names.
pub fn open(source: &str, compat: Compat) -> Result<Tokenizer, Failure> {
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
            let options = Options { normalize: is_normalized(dir), ..compat.into() };
            Ok(Tokenizer::from_metadata(&of_checkpoint(dir)?, options)?)
        }
        None => {
            let opened = Opened::open(source)?;
            Ok(Tokenizer::from_metadata(opened.model().metadata(), compat.into())?)
        }
    }
}

fn is_checkpoint(path: &Path) -> bool {
    ["tokenizer.json", "tokenizer.model", "vocab.json"].iter().any(|name| path.join(name).is_file())
}

/// The keys that a conversion would write about the tokenizer.
fn of_checkpoint(dir: &Path) -> Result<Metadata, Failure> {
    let converted = hf::vocabulary(dir)?;
    print_notes(&converted.notes);
    let mut metadata = converted.metadata;
    // Its converter knows what a vocabulary of this family does not say.
    if json(&dir.join("config.json"))["model_type"].as_str().is_some_and(|t| t.starts_with("gemma"))
    {
        metadata.set("tokenizer.ggml.add_space_prefix", false);
    }
    Ok(metadata)
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
