//! Checkpoints of a source: a directory, a single weight file, a repository on the Hub.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gguf_checkpoint::Checkpoint;
pub use gguf_checkpoint::WeightsSummary;
use gguf_checkpoint::modules::Module;
use gguf_remote::{Location, RemoteOptions, RepositoryFiles};
use tempfile::TempDir;

use crate::Error;
use crate::model::explained;
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
                let checkpoint =
                    Checkpoint::open(&dir).map_err(|error| explained(error, source))?;
                Ok(Self { checkpoint, dir, source: source.to_owned(), temporary: None })
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
