//! Checkpoints of a source: a directory, a single weight file, a repository on the Hub.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gguf::{Shape, TensorType, is_gguf as has_gguf_name};
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use gguf_checkpoint::modules::Module;
use gguf_remote::{Location, RemoteOptions, RepositoryFiles};
use gguf_store::LocalFile;
use tempfile::TempDir;

use crate::Error;
use gguf_store::digest::sha256;
use gguf_store::scratch::{self, outside};

/// Extensions of the small files of a checkpoint: configurations, tokenizers, the model card.
const SMALL_FILE_EXTENSIONS: [&str; 6] = [".json", ".jinja", ".md", ".model", ".tiktoken", ".txt"];

/// An open checkpoint.
pub struct Opened {
    /// The tensors.
    pub checkpoint: Checkpoint,
    /// Directory of the small files.
    pub dir: PathBuf,
    /// Source as the user named it.
    source: String,
    /// Temporary directory of downloaded files.
    temporary: Option<TempDir>,
}

impl Opened {
    /// Opens the checkpoint that `source` names. The small files of a remote checkpoint are downloaded; its weights are
    /// read on demand.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid.
    pub fn open(source: &str) -> Result<Self, Error> {
        match Location::parse(source)? {
            Location::Path(dir) => {
                let (checkpoint, source) = (Checkpoint::open(&dir)?, source.to_owned());
                Ok(Self { checkpoint, dir, source, temporary: None })
            }
            _ => {
                let files = RepositoryFiles::list(source, RemoteOptions::from_env())?;
                let mut opened = Self::fetch(source, &files)?;
                let checkpoint = open_remote(&files, &opened.dir);
                opened.checkpoint = checkpoint.map_err(|error| opened.named(error))?;
                Ok(opened)
            }
        }
    }

    /// Opens a checkpoint without its weights, which may be missing.
    ///
    /// # Errors
    /// If a small file cannot be read.
    pub(crate) fn open_for_vocabulary(source: &str) -> Result<Self, Error> {
        match Location::parse(source)? {
            Location::Path(dir) => {
                let (checkpoint, source) = (Checkpoint::without_weights(), source.to_owned());
                Ok(Self { checkpoint, dir, source, temporary: None })
            }
            _ => Self::fetch(source, &RepositoryFiles::list(source, RemoteOptions::from_env())?),
        }
    }

    /// Returns the default output directory: that of a local checkpoint.
    pub(crate) fn output_dir(&self) -> &Path {
        if self.temporary.is_some() { Path::new(".") } else { &self.dir }
    }

    /// Downloads the small files.
    fn fetch(source: &str, files: &RepositoryFiles) -> Result<Self, Error> {
        let temporary = scratch::directory()?;
        let path = temporary.path().to_owned();
        let failed = |fault| outside(Error::environment("write", &path, fault), &path);
        // Without a model card, the model name is derived from the directory name.
        let name = files.repository().rsplit('/').next().unwrap_or_default();
        let dir = temporary.path().join(name);
        std::fs::create_dir(&dir).map_err(failed)?;
        for name in files.names().iter().filter(|name| is_small(name)) {
            std::fs::write(dir.join(name), files.fetch(name)?).map_err(failed)?;
        }
        for module in Module::read(&dir)?.iter().filter(|module| module.is_pooling_or_dense()) {
            let folder = module.folder()?;
            std::fs::create_dir_all(dir.join(folder)).map_err(failed)?;
            let name = format!("{folder}/config.json");
            std::fs::write(dir.join(&name), files.fetch(&name)?).map_err(failed)?;
        }
        let (checkpoint, source) = (Checkpoint::without_weights(), source.to_owned());
        Ok(Self { checkpoint, dir, source, temporary: Some(temporary) })
    }

    /// Replaces the temporary directory in an error by the source.
    pub(crate) fn named(&self, error: Error) -> Error {
        match self.temporary {
            Some(_) => rename_paths(error, &self.dir, &self.source),
            None => error,
        }
    }
}

/// Replaces the directory `dir` in the paths of an error by `source`.
fn rename_paths(error: Error, dir: &Path, source: &str) -> Error {
    let user = |path: PathBuf| match path.strip_prefix(dir) {
        Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from(source),
        Ok(rest) => PathBuf::from(format!("{source}/{}", rest.display())),
        Err(_) => path,
    };
    match error {
        Error::InFile { path, finding } => Error::InFile { path: user(path), finding },
        Error::Environment { action, path, source } => {
            Error::Environment { action, path: user(path), source }
        }
        other => other,
    }
}

/// Summary of the weights of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// Model class in the configuration.
    pub class: Option<String>,
    /// Number of weight files.
    pub files: usize,
    /// Number of tensors.
    pub tensors: u64,
    /// Number of parameters.
    pub parameters: u64,
    /// Number of tensors and bytes of each type.
    pub types: BTreeMap<TensorType, (u64, u64)>,
}

impl Weights {
    /// Summarizes the local checkpoint directory or single weight file at `path` from its headers; `None` for other
    /// files.
    ///
    /// # Errors
    /// If the weights cannot be read.
    pub fn at(path: &Path) -> Result<Option<Self>, Error> {
        /// Extensions of single weight files.
        const WEIGHT_EXTENSIONS: [&str; 5] = ["safetensors", "bin", "pth", "pt", "ckpt"];
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let mut class = None;
        let checkpoint = if path.is_dir() {
            let names = path.read_dir().map_err(|fault| Error::read(path, fault))?;
            let mut names = names.flatten().map(|entry| entry.file_name());
            if names.any(|name| name.to_str().is_some_and(has_gguf_name)) {
                return Ok(None);
            }
            if Config::file_in(path).is_some() {
                class = Config::read(path)?.class().ok().map(str::to_owned);
                Checkpoint::open(path)?
            } else {
                match Checkpoint::open(path) {
                    Err(_) => return Ok(None),
                    Ok(opened) => opened,
                }
            }
        } else if WEIGHT_EXTENSIONS.contains(&ending) && path.is_file() {
            // Legacy GGML files and GGUF files can have these extensions, too.
            if LocalFile::open(path)?.mapped().starts_with(&gguf::MAGIC) {
                return Ok(None);
            }
            match Checkpoint::open_file(path) {
                Err(_) if ending != WEIGHT_EXTENSIONS[0] => return Ok(None),
                opened => opened?,
            }
        } else {
            return Ok(None);
        };
        let files: BTreeSet<_> = checkpoint.files.iter().map(|file| &file.path).collect();
        let mut weights = Self { class, files: files.len(), ..Self::default() };
        for entry in checkpoint.entries {
            let elements = entry.shape.iter().fold(1, |all: u64, len| all.saturating_mul(*len));
            let shape = Shape::new(&[elements]);
            let of_type = weights.types.entry(entry.tensor_type).or_default();
            of_type.0 += 1;
            of_type.1 += shape.and_then(|shape| entry.tensor_type.byte_len(&shape)).unwrap_or(0);
            weights.tensors += 1;
            weights.parameters = weights.parameters.saturating_add(elements);
        }
        Ok(Some(weights))
    }

    /// Returns the bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.types.values().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }
}

/// Opens remote weights; `dir` has the small files.
fn open_remote(files: &RepositoryFiles, dir: &Path) -> Result<Checkpoint, Error> {
    let present: BTreeSet<_> = files.names().iter().cloned().collect();
    Checkpoint::open_with(dir, &present, &|name| {
        let failed =
            |error| Error::environment("open", Path::new(name), std::io::Error::other(error));
        files.open(name).map_err(failed)
    })
}

fn is_small(name: &str) -> bool {
    SMALL_FILE_EXTENSIONS.iter().any(|end| name.ends_with(end))
}

/// Returns names and digests of the small files in a directory, sorted by name.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn digests_of_small_files(dir: &Path) -> Result<Vec<(String, String)>, Error> {
    let listed = std::fs::read_dir(dir).map_err(|fault| Error::read(dir, fault))?;
    let mut digests = Vec::new();
    for entry in listed {
        let path = entry.map_err(|fault| Error::read(dir, fault))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_small(&name) && path.is_file() {
            let bytes = std::fs::read(&path).map_err(|fault| Error::read(&path, fault))?;
            digests.push((name, sha256(&bytes)));
        }
    }
    digests.sort_unstable();
    Ok(digests)
}
