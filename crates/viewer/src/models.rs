//! Open models: their files, headers, and values computed once.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use gguf::Gguf;
use gguf_kit::{Error, Files, HeldFile};
use gguf_remote::Cache;
use gguf_store::{FileState, Model, ModelTensor};
use gguf_tokenizer::Tokenizer;
use serde_json::Value as Json;

use crate::query::Selector;
use crate::response::ApiError;

/// Maximum number of values to read for one request.
#[derive(Clone, Copy, Debug)]
pub struct ReadBudget {
    pub tile: u64,
    pub statistics: u64,
}

/// An open model.
pub struct OpenModel {
    /// Path or URL as the user gave it.
    pub source: String,
    pub files: Files,
    /// Header of each file; `None` if it is invalid.
    headers: Vec<Option<Gguf>>,
    model: Result<Model, ApiError>,
    /// Error of a model whose headers are intact, but whose tensor data is incomplete.
    damage: Option<ApiError>,
    /// Created on first use.
    tokenizer: OnceLock<Result<Tokenizer, ApiError>>,
    /// Findings in the headers, computed on first use.
    pub findings: OnceLock<Json>,
}

impl OpenModel {
    /// Opens the model at `source`. A model with an invalid header is opened too.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn open(source: &str, cache: Option<&Arc<Cache>>) -> Result<Self, Error> {
        let files = Files::open(source, cache)?;
        let complete = files.model().map_err(ApiError::from);
        let (model, damage) = match complete {
            Err(error) => match files.truncated_model() {
                Some(model) => (Ok(model), Some(error)),
                None => (Err(error), None),
            },
            complete => (complete, None),
        };
        let is_truncated = damage.is_some();
        let header = |file: &HeldFile| match is_truncated {
            true => file.truncated_gguf(),
            false => file.gguf().ok(),
        };
        let headers = files.files().iter().map(header).collect();
        Ok(Self {
            source: source.to_owned(),
            files,
            headers,
            model,
            damage,
            tokenizer: OnceLock::new(),
            findings: OnceLock::new(),
        })
    }

    /// Returns the parsed model.
    ///
    /// # Errors
    /// If a header is invalid.
    pub fn model(&self) -> Result<&Model, ApiError> {
        self.model.as_ref().map_err(Clone::clone)
    }

    /// Returns the error if a header is invalid or tensor data is missing.
    pub fn error(&self) -> Option<&Json> {
        self.model.as_ref().err().or(self.damage.as_ref()).map(|failure| &failure.error)
    }

    /// Returns the error if tensor data is missing at the end of a file with intact headers.
    pub fn damage(&self) -> Option<&ApiError> {
        self.damage.as_ref()
    }

    /// Returns the bytes of a tensor that are missing because its file is truncated.
    pub fn missing_bytes(&self, tensor: &ModelTensor) -> u64 {
        let file = self.files.files().get(tensor.shard);
        let len = file.map_or(u64::MAX, |file| file.source().byte_len());
        let bytes = tensor.info.byte_len().unwrap_or(0);
        tensor.offset.saturating_add(bytes).saturating_sub(len).min(bytes)
    }

    /// Returns an error if a file has changed since it was opened.
    pub fn require_unchanged(&self) -> Result<(), ApiError> {
        for file in self.files.files() {
            let name = file.name().display();
            match file.state() {
                FileState::Unchanged => {}
                FileState::Changed => {
                    return Err(ApiError::file_changed(format!(
                        "{name} has changed since it was opened"
                    )));
                }
                FileState::Deleted => {
                    return Err(ApiError::file_changed(format!("{name} was deleted")));
                }
            }
        }
        Ok(())
    }

    /// Returns a file by its index, and its header if valid.
    pub fn file(&self, index: usize) -> Result<(&HeldFile, Option<&Gguf>), ApiError> {
        let files = self.files.files();
        let file = files.get(index).ok_or_else(|| {
            let last = files.len().saturating_sub(1);
            ApiError::bad_request(format!("file {index} does not exist; expected 0 to {last}"))
        })?;
        Ok((file, self.headers.get(index).and_then(Option::as_ref)))
    }

    /// Returns a tensor and its index.
    pub fn tensor(&self, selector: &Selector) -> Result<(usize, &ModelTensor), ApiError> {
        let model = self.model()?;
        let tensors = model.tensors();
        let found = match selector {
            Selector::Index(n) => usize::try_from(*n).ok(),
            Selector::Name(name) => tensors.iter().position(|tensor| tensor.info.name == *name),
        };
        match (found.and_then(|n| Some((n, tensors.get(n)?))), selector) {
            (Some(found), _) => Ok(found),
            (None, Selector::Name(name)) => Err(gguf_kit::values::no_tensor(model, name).into()),
            (None, Selector::Index(n)) => {
                let message = format!("tensor {n} does not exist; the model has {}", tensors.len());
                Err(Error::request("name-not-found", message, "").into())
            }
        }
    }

    /// Returns the read budget: smaller for remote files.
    pub fn budget(&self) -> ReadBudget {
        match self.files.is_remote() {
            true => ReadBudget { tile: 1 << 20, statistics: 1 << 22 },
            false => ReadBudget { tile: 1 << 22, statistics: 1 << 26 },
        }
    }

    /// Returns the tokenizer, created on first use.
    pub fn tokenizer(&self) -> Result<&Tokenizer, ApiError> {
        let tokenizer = self.tokenizer.get_or_init(|| {
            let metadata = self.model()?.metadata();
            Ok(Tokenizer::from_metadata(metadata, gguf_tokenizer::TokenizerOptions::default())?)
        });
        tokenizer.as_ref().map_err(Clone::clone)
    }
}

/// The open models by index. Each can be reopened.
pub struct Models {
    slots: Vec<Slot>,
    cache: Option<Arc<Cache>>,
}

struct Slot {
    source: String,
    /// `None` if reopening failed.
    model: RwLock<Option<Arc<OpenModel>>>,
}

impl Models {
    /// Opens all models.
    ///
    /// # Errors
    /// If a model cannot be opened; see [`OpenModel::open`].
    pub fn open<'s>(
        sources: impl Iterator<Item = &'s String>,
        cache: Option<Arc<Cache>>,
    ) -> Result<Self, Error> {
        let slot = |source: &String| {
            let model = Arc::new(OpenModel::open(source, cache.as_ref())?);
            Ok(Slot { source: source.clone(), model: RwLock::new(Some(model)) })
        };
        Ok(Self { slots: sources.map(slot).collect::<Result<_, Error>>()?, cache })
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the model whose index is `id`, a part of the request path.
    pub fn get(&self, id: &str) -> Result<(usize, Arc<OpenModel>), ApiError> {
        let index = id.parse().ok().filter(|id| *id < self.len()).ok_or_else(|| {
            let message = format!("no such model; {} are open", self.len());
            ApiError::from(Error::request("name-not-found", message, ""))
        })?;
        Ok((index, self.model(index)?))
    }

    /// Returns a model by its index, which must be valid.
    pub fn model(&self, index: usize) -> Result<Arc<OpenModel>, ApiError> {
        let slot = &self.slots[index];
        let model = slot.model.read().unwrap_or_else(PoisonError::into_inner).clone();
        match model {
            Some(model) => Ok(model),
            // The file may exist again.
            None => self.reopen(index),
        }
    }

    /// Reopens the files of a model.
    pub fn reopen(&self, index: usize) -> Result<Arc<OpenModel>, ApiError> {
        let slot = &self.slots[index];
        let model = Arc::new(OpenModel::open(&slot.source, self.cache.as_ref())?);
        *slot.model.write().unwrap_or_else(PoisonError::into_inner) = Some(model.clone());
        Ok(model)
    }

    /// Closes the files of a model, edits them, and reopens them.
    pub fn edit<T>(
        &self,
        index: usize,
        edit: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, ApiError> {
        let slot = &self.slots[index];
        let mut model = slot.model.write().unwrap_or_else(PoisonError::into_inner);
        *model = None;
        let done = edit();
        *model = OpenModel::open(&slot.source, self.cache.as_ref()).ok().map(Arc::new);
        Ok(done?)
    }
}
