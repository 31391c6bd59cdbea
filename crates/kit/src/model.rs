//! Models from wherever the user says: a file, a directory, any shard, a URL, the hub, a bucket.

use std::path::{Path, PathBuf};

use gguf_remote::{Location, Transferred};
use gguf_store::{Model, ShardSet};

use crate::{Error, Files};

/// Opens all files of the model that `word` names: a path, a directory, any shard, a URL,
/// `hf:org/repo`, `s3://bucket/key` (see [`gguf_remote::Location`]).
///
/// # Errors
/// If they cannot be had, or break the format.
pub fn open(word: &str) -> Result<Opened, Error> {
    Opened::open(word)
}

/// A model, its files open.
pub struct Opened {
    model: Model,
    /// What reading far files has cost so far; `None` for files on this machine.
    transferred: Option<Vec<Transferred>>,
}

impl Opened {
    fn open(word: &str) -> Result<Self, Error> {
        let location = Location::parse(word)?;
        if let Location::Path(path) = &location {
            return Ok(Self { model: Model::open(path)?, transferred: None });
        }
        let files = Files::at(location, None)?;
        Ok(Self { model: files.model()?, transferred: files.transferred() })
    }

    /// What the files hold together.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The same, to be kept or closed.
    pub fn into_model(self) -> Model {
        self.model
    }

    /// Its files, which no output may replace: paths, and addresses of far ones.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.model.files()
    }

    /// Bytes that came over the network so far; `None` for files on this machine.
    pub fn transferred(&self) -> Option<u64> {
        Some(self.transferred.as_ref()?.iter().map(Transferred::bytes).sum())
    }
}

/// The only file of the model at `path`, which is to be changed itself; `done` says how.
pub(crate) fn single_file(path: &Path, done: &str) -> Result<PathBuf, Error> {
    match ShardSet::find(path)?.paths() {
        [file] => Ok(file.clone()),
        _ => {
            let what = format!("only a single file can be {done} in place");
            Err(Error::request("output-missing", what, "give -o"))
        }
    }
}
