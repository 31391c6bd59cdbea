//! A model that is shown: its files, what they hold, and what was made of them once.

use std::sync::{Arc, OnceLock};

use gguf::Gguf;
use gguf_kit::{Error, Files, HeldFile};
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
    pub tokenizer: OnceLock<Result<Tokenizer, Failure>>,
    /// The same.
    pub findings: OnceLock<Json>,
}

impl Shown {
    /// Opens the model that `source` names.
    ///
    /// # Errors
    /// If it cannot be had; one that breaks the format can be shown.
    pub fn open(source: &str) -> Result<Self, Error> {
        let files = Files::open(source)?;
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
                    return Err(Failure::changed(format!("{name} has changed since it was opened")));
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
pub struct Shelf(Vec<std::sync::RwLock<Arc<Shown>>>);

impl Shelf {
    /// These models.
    pub fn new(models: Vec<Shown>) -> Self {
        Self(models.into_iter().map(|model| std::sync::RwLock::new(Arc::new(model))).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The model with this number.
    pub fn get(&self, id: &str) -> Result<Arc<Shown>, Failure> {
        Ok(self.slot(id)?.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone())
    }

    /// Opens the files of a model anew.
    pub fn reopen(&self, id: &str) -> Result<Arc<Shown>, Failure> {
        let slot = self.slot(id)?;
        let source = self.get(id)?.source.clone();
        let model = Arc::new(Shown::open(&source)?);
        *slot.write().unwrap_or_else(std::sync::PoisonError::into_inner) = model.clone();
        Ok(model)
    }

    fn slot(&self, id: &str) -> Result<&std::sync::RwLock<Arc<Shown>>, Failure> {
        let found = id.parse().ok().and_then(|id: usize| self.0.get(id));
        found.ok_or_else(|| {
            let what = format!("there is no such model: there are {}", self.len());
            Error::request("name-not-found", what, "").into()
        })
    }
}
