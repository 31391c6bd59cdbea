//! Open models: their files, headers, and values computed once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use gguf::{Finding, Gguf};
use gguf_kit::values::TileBudget;
use gguf_kit::{Error, Files, HeldFile};
use gguf_remote::Cache;
use gguf_store::{FileState, Model, ModelTensor};
use gguf_tokenizer::Tokenizer;
use serde_json::Value as Json;

use crate::query::Selector;
use crate::response::ApiError;

/// Limits of what is read for one request.
#[derive(Clone, Copy, Debug)]
pub struct ReadBudget {
    pub tile: TileBudget,
    pub statistics: u64,
}

/// Violations of the format that concern single keys or tensors, or data that is missing.
struct Damage {
    /// The first violation.
    error: ApiError,
    /// Violations by key of the first file.
    keys: HashMap<Box<str>, Box<str>>,
    /// Violations by index of a tensor.
    tensors: HashMap<usize, String>,
}

/// An open model.
pub struct OpenModel {
    /// Path or URL as the user gave it.
    pub source: String,
    pub files: Files,
    /// Header of each file; `None` if it is invalid.
    headers: Vec<Option<Gguf>>,
    model: Result<Model, ApiError>,
    /// Damage of a model whose headers can be shown although they break rules.
    damage: Option<Damage>,
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
            Err(error) => match files.damaged_model() {
                Some((model, violations)) => {
                    let damage = Damage::of(error, &model, &violations);
                    (Ok(model), Some(damage))
                }
                None => (Err(error), None),
            },
            complete => (complete, None),
        };
        let is_damaged = damage.is_some();
        let header = |file: &HeldFile| match is_damaged {
            true => file.damaged_gguf().map(|(gguf, _)| gguf),
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

    /// Returns the error if a header is invalid or the model is damaged.
    pub fn error(&self) -> Option<&Json> {
        let damage = self.damage.as_ref().map(|damage| &damage.error);
        self.model.as_ref().err().or(damage).map(|failure| &failure.error)
    }

    /// Whether the headers break rules, but can be shown.
    pub fn is_damaged(&self) -> bool {
        self.damage.is_some()
    }

    /// Whether each file that can be shown has its whole header.
    pub fn header_complete(&self) -> bool {
        self.headers.iter().flatten().all(Gguf::header_complete)
    }

    /// Returns the error if tensor data or a part of the header is missing in a file that can be shown.
    pub fn truncation(&self) -> Option<&ApiError> {
        let damage = self.damage.as_ref()?;
        let tensors = self.model.as_ref().ok()?.tensors();
        let missing = tensors.iter().any(|tensor| self.missing_bytes(tensor) > 0);
        (missing || !self.header_complete()).then_some(&damage.error)
    }

    /// Returns the violation that concerns a key.
    pub fn key_damage(&self, key: &str) -> Option<&str> {
        self.damage.as_ref()?.keys.get(key).map(|message| &**message)
    }

    /// Returns the violation that concerns the tensor with this index.
    pub fn tensor_damage(&self, n: usize) -> Option<&str> {
        self.damage.as_ref()?.tensors.get(&n).map(String::as_str)
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
            // Every place of a remote tile is a request.
            true => ReadBudget {
                tile: TileBudget { numbers: 1 << 20, places: 32 },
                statistics: 1 << 22,
            },
            false => ReadBudget {
                tile: TileBudget { numbers: 1 << 22, places: u64::MAX },
                statistics: 1 << 26,
            },
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

impl Damage {
    /// Collects the `violations` of each file of a model by key and tensor.
    fn of(error: ApiError, model: &Model, violations: &[Vec<Finding>]) -> Self {
        let mut keys = HashMap::new();
        let mut by_name: HashMap<(usize, &str), &str> = HashMap::new();
        for (shard, finding) in
            violations.iter().enumerate().flat_map(|(i, all)| all.iter().map(move |one| (i, one)))
        {
            if let (Some(key), 0) = (&finding.key, shard) {
                keys.entry(key.clone()).or_insert_with(|| finding.message.clone());
            }
            // Both tensors of an overlap are named below.
            if let Some(tensor) =
                finding.tensor.as_deref().filter(|_| finding.code != "tensor-overlap")
            {
                by_name.entry((shard, tensor)).or_insert(&finding.message);
            }
        }
        let named = model.tensors().iter().enumerate().filter_map(|(n, tensor)| {
            Some((n, (*by_name.get(&(tensor.shard, &*tensor.info.name))?).to_owned()))
        });
        let mut tensors: HashMap<usize, String> = named.collect();
        for (a, b) in overlaps(model.tensors()) {
            for (n, other) in [(a, b), (b, a)] {
                let name: String = model.tensors()[other].info.name.chars().take(200).collect();
                tensors.entry(n).or_insert_with(|| format!("its data overlaps that of {name}"));
            }
        }
        Self { error, keys, tensors }
    }
}

/// Returns pairs of tensors whose data overlaps: each tensor with the one before it that ends last.
fn overlaps(tensors: &[ModelTensor]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|&n| (tensors[n].shard, tensors[n].offset));
    let mut found = Vec::new();
    let mut last: Option<(usize, u64)> = None;
    for n in order {
        let tensor = &tensors[n];
        let bytes = tensor.info.byte_len().unwrap_or(0);
        let end = tensor.offset.saturating_add(bytes);
        let before = last.filter(|(other, _)| tensors[*other].shard == tensor.shard);
        if let Some((other, _)) = before.filter(|(_, end)| tensor.offset < *end && bytes > 0) {
            found.push((other, n));
        }
        if before.is_none_or(|(_, other_end)| end > other_end) {
            last = Some((n, end));
        }
    }
    found
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
