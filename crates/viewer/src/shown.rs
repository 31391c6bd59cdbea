//! A model that is shown: its files, what they hold, and what was made of them once.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use gguf::Gguf;
use gguf_kit::{Error, Files, HeldFile};
use gguf_remote::Cache;
use gguf_store::{FileState, Model, ModelTensor};
use gguf_tokenizer::Tokenizer;
use serde_json::Value as Json;

use crate::answer::Failure;
use crate::ask::Named;

/// How many numbers a picture or a sample of a model may cost.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub tile: u64,
    pub statistics: u64,
}

/// A model, its files open.
pub struct Shown {
    /// The word by which the user named it.
    pub source: String,
    pub files: Files,
    /// The header of each file, as far as it keeps the rules.
    headers: Vec<Option<Gguf>>,
    model: Result<Model, Failure>,
    /// Made when it is asked for first.
    tokenizer: OnceLock<Result<Tokenizer, Failure>>,
    /// The same.
    pub findings: OnceLock<Json>,
}

impl Shown {
    /// Opens the model that `source` names.
    ///
    /// # Errors
    /// If it cannot be had; one that breaks the format can be shown.
    pub fn open(source: &str, cache: Option<&Arc<Cache>>) -> Result<Self, Error> {
        let files = Files::open(source, cache)?;
        let model = files.model().map_err(Failure::from);
        let headers = files.files().iter().map(|file| file.gguf().ok()).collect();
        Ok(Self {
            source: source.to_owned(),
            files,
            headers,
            model,
            tokenizer: OnceLock::new(),
            findings: OnceLock::new(),
        })
    }

    /// What the files hold.
    ///
    /// # Errors
    /// If they break the format.
    pub fn model(&self) -> Result<&Model, Failure> {
        self.model.as_ref().map_err(Clone::clone)
    }

    /// Why there is no model.
    pub fn fault(&self) -> Option<&Json> {
        self.model.as_ref().err().map(|failure| &failure.error)
    }

    /// Refuses a model of which a file has changed.
    pub fn require_same(&self) -> Result<(), Failure> {
        for file in self.files.files() {
            let name = file.name().display();
            match file.state() {
                FileState::Same => {}
                FileState::Changed => {
                    return Err(Failure::changed(format!(
                        "{name} has changed since it was opened"
                    )));
                }
                FileState::Gone => return Err(Failure::changed(format!("{name} is gone"))),
            }
        }
        Ok(())
    }

    /// A file by its number, and its header if that keeps the rules.
    pub fn file(&self, number: usize) -> Result<(&HeldFile, Option<&Gguf>), Failure> {
        let files = self.files.files();
        let file = files.get(number).ok_or_else(|| {
            let last = files.len().saturating_sub(1);
            Failure::request(format!("there is no file {number}: they go from 0 to {last}"))
        })?;
        Ok((file, self.headers.get(number).and_then(Option::as_ref)))
    }

    /// The number of a tensor and what it is.
    pub fn tensor(&self, named: &Named) -> Result<(usize, &ModelTensor), Failure> {
        let model = self.model()?;
        let tensors = model.tensors();
        let found = match named {
            Named::Number(n) => usize::try_from(*n).ok(),
            Named::Name(name) => tensors.iter().position(|tensor| tensor.info.name == *name),
        };
        match (found.and_then(|n| Some((n, tensors.get(n)?))), named) {
            (Some(found), _) => Ok(found),
            (None, Named::Name(name)) => Err(gguf_kit::values::no_tensor(model, name).into()),
            (None, Named::Number(n)) => {
                let what = format!("there is no tensor {n}: there are {}", tensors.len());
                Err(Error::request("name-not-found", what, "").into())
            }
        }
    }

    /// How much may be read for a picture.
    pub fn budget(&self) -> Budget {
        match self.files.is_far() {
            true => Budget { tile: 1 << 20, statistics: 1 << 22 },
            false => Budget { tile: 1 << 22, statistics: 1 << 26 },
        }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> Result<&Tokenizer, Failure> {
        let made = self.tokenizer.get_or_init(|| {
            let metadata = self.model()?.metadata();
            Ok(Tokenizer::from_metadata(metadata, gguf_tokenizer::Options::default())?)
        });
        made.as_ref().map_err(Clone::clone)
    }
}

/// Models by their numbers; each can be opened anew.
pub struct Shelf {
    slots: Vec<Slot>,
    cache: Option<Arc<Cache>>,
}

/// The place of a model.
struct Slot {
    source: String,
    /// `None` if it could not be opened again.
    shown: RwLock<Option<Arc<Shown>>>,
}

impl Shelf {
    /// Opens models.
    ///
    /// # Errors
    /// As [`Shown::open`].
    pub fn open<'s>(
        sources: impl Iterator<Item = &'s String>,
        cache: Option<Arc<Cache>>,
    ) -> Result<Self, Error> {
        let slot = |source: &String| {
            let shown = Arc::new(Shown::open(source, cache.as_ref())?);
            Ok(Slot { source: source.clone(), shown: RwLock::new(Some(shown)) })
        };
        Ok(Self { slots: sources.map(slot).collect::<Result<_, Error>>()?, cache })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The model whose number stands in an address.
    pub fn get(&self, id: &str) -> Result<(usize, Arc<Shown>), Failure> {
        let number = id.parse().ok().filter(|id| *id < self.len()).ok_or_else(|| {
            let what = format!("there is no such model: there are {}", self.len());
            Failure::from(Error::request("name-not-found", what, ""))
        })?;
        Ok((number, self.model(number)?))
    }

    /// The model with this number, of those that there are.
    pub fn model(&self, id: usize) -> Result<Arc<Shown>, Failure> {
        let slot = &self.slots[id];
        let shown = slot.shown.read().unwrap_or_else(PoisonError::into_inner).clone();
        match shown {
            Some(shown) => Ok(shown),
            // It may be there again.
            None => self.reopen(id),
        }
    }

    /// Opens the files of a model anew.
    pub fn reopen(&self, id: usize) -> Result<Arc<Shown>, Failure> {
        let slot = &self.slots[id];
        let model = Arc::new(Shown::open(&slot.source, self.cache.as_ref())?);
        *slot.shown.write().unwrap_or_else(PoisonError::into_inner) = Some(model.clone());
        Ok(model)
    }

    /// Changes the files of a model while nobody here has them open, and opens them anew.
    pub fn edit<T>(
        &self,
        id: usize,
        edit: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let slot = &self.slots[id];
        let mut shown = slot.shown.write().unwrap_or_else(PoisonError::into_inner);
        *shown = None;
        let done = edit();
        *shown = Shown::open(&slot.source, self.cache.as_ref()).ok().map(Arc::new);
        Ok(done?)
    }
}
