//! Models of a source: a file, a directory, any shard, a URL, the Hub, an object store.

use std::path::Path;

use gguf_remote::{Location, Transferred};
use gguf_store::Model;

use crate::{Error, Files};

/// Opens all files of the model that `source` names: a path, a directory, any shard, a URL, `hf:org/repo`,
/// `s3://bucket/key` (see [`gguf_remote::Location`]).
///
/// # Errors
/// If a file cannot be read or breaks the format.
pub fn open(source: &str) -> Result<Opened, Error> {
    Opened::open(source)
}

/// An open model.
pub struct Opened {
    model: Model,
    /// Transfer counters of remote files; `None` for local files.
    transferred: Option<Vec<Transferred>>,
}

impl Opened {
    fn open(source: &str) -> Result<Self, Error> {
        let location = Location::parse(source)?;
        if let Location::Path(path) = &location {
            return Ok(Self { model: Model::open(path)?, transferred: None });
        }
        let files = Files::at(location, None)?;
        Ok(Self { model: files.model()?, transferred: files.transferred() })
    }

    /// Returns the model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Converts into the model.
    pub fn into_model(self) -> Model {
        self.model
    }

    /// Paths of local files and addresses of remote files, which no output may replace.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.model.files()
    }

    /// Bytes transferred over the network so far; `None` for local files.
    pub fn transferred(&self) -> Option<u64> {
        Some(self.transferred.as_ref()?.iter().map(Transferred::bytes).sum())
    }
}
