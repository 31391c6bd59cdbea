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

/// Opens a model as [`open`] does; a local shard whose siblings are missing alone, with the reason as a warning.
///
/// # Errors
/// As [`open`].
pub fn open_partial(source: &str) -> Result<(Opened, Option<String>), Error> {
    match open(source) {
        Err(Error::File(finding))
            if finding.code == "shard-missing" && Path::new(source).is_file() =>
        {
            let model = Model::open_shard(Path::new(source))?;
            let warning = format!("{}; only {source} is read", finding.message);
            Ok((Opened { model, transferred: None }, Some(warning)))
        }
        opened => Ok((opened?, None)),
    }
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
            let model = Model::open(path).map_err(|error| explained(error, source))?;
            return Ok(Self { model, transferred: None });
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

/// Says what a path is that names no GGUF: a checkpoint, or a repository of the Hub.
pub(crate) fn explained(error: Error, source: &str) -> Error {
    let path = Path::new(source);
    if path.is_dir() && path.join("config.json").is_file() && error.code() == "model-missing" {
        let what = format!("{source} is a checkpoint, and this needs a GGUF");
        let help = format!("convert it: `gguf convert {source} -o model.gguf`");
        return Error::request("model-missing", what, help);
    }
    match hub_name(source) {
        Some(name) if !path.exists() => {
            let help = format!("a model of the Hub is named `hf:{name}`");
            Error::request("model-missing", format!("there is no file {source}"), help)
        }
        _ => error,
    }
}

/// Returns the name of a repository, if a path has its form: an owner and a model, and maybe a type.
fn hub_name(source: &str) -> Option<&str> {
    let (owner, model) = source.split_once('/')?;
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:@".contains(c))
    };
    let is_file = |part: &str| part.to_lowercase().ends_with(".gguf");
    let is_name = is_part(owner) && is_part(model) && !is_file(owner) && !is_file(model);
    (is_name && !Path::new(owner).exists()).then_some(source)
}
