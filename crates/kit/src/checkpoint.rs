//! Checkpoints from wherever the user says: a directory, a lone file, a repository on the hub.

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

/// What the small files of a checkpoint end in: configurations, tokenizers, the model card.
const SMALL: [&str; 6] = [".json", ".jinja", ".md", ".model", ".tiktoken", ".txt"];

/// An open checkpoint.
pub struct Opened {
    /// Its tensors.
    pub checkpoint: Checkpoint,
    /// The directory with its small files.
    pub dir: PathBuf,
    /// What the user called it.
    word: String,
    /// That directory, if it is not the user's.
    temporary: Option<TempDir>,
}

impl Opened {
    /// Opens the checkpoint that `word` names. Of a far one the small files are fetched, and the
    /// weights are read when they are needed.
    ///
    /// # Errors
    /// If a file cannot be had, or is at fault.
    pub fn open(word: &str) -> Result<Self, Error> {
        match Location::parse(word)? {
            Location::Path(dir) => {
                let (checkpoint, word) = (Checkpoint::open(&dir)?, word.to_owned());
                Ok(Self { checkpoint, dir, word, temporary: None })
            }
            _ => {
                let files = RepositoryFiles::list(word, RemoteOptions::from_env())?;
                let mut opened = Self::fetch(word, &files)?;
                let checkpoint = open_far(&files, &opened.dir);
                opened.checkpoint = checkpoint.map_err(|error| opened.called(error))?;
                Ok(opened)
            }
        }
    }

    /// The same without the weights, which need not be there.
    ///
    /// # Errors
    /// If a small file cannot be had.
    pub(crate) fn open_for_vocabulary(word: &str) -> Result<Self, Error> {
        match Location::parse(word)? {
            Location::Path(dir) => {
                let (checkpoint, word) = (Checkpoint::without_weights(), word.to_owned());
                Ok(Self { checkpoint, dir, word, temporary: None })
            }
            _ => Self::fetch(word, &RepositoryFiles::list(word, RemoteOptions::from_env())?),
        }
    }

    /// Where to write if the user does not say: beside a checkpoint that is here.
    pub(crate) fn output_dir(&self) -> &Path {
        if self.temporary.is_some() { Path::new(".") } else { &self.dir }
    }

    /// Fetches the small files.
    fn fetch(word: &str, files: &RepositoryFiles) -> Result<Self, Error> {
        let temporary = scratch::directory()?;
        let place = temporary.path().to_owned();
        let failed = |source| outside(Error::environment("write", &place, source), &place);
        // The name of the model is taken from that of its directory where no card says it.
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
        let (checkpoint, word) = (Checkpoint::without_weights(), word.to_owned());
        Ok(Self { checkpoint, dir, word, temporary: Some(temporary) })
    }

    /// An error of work on this checkpoint, by the name that the user gave it.
    pub(crate) fn called(&self, error: Error) -> Error {
        match self.temporary {
            Some(_) => called(error, &self.dir, &self.word),
            None => error,
        }
    }
}

/// An error in which a directory of ours has the name that the user gave what is in it.
fn called(error: Error, dir: &Path, word: &str) -> Error {
    let user = |path: PathBuf| match path.strip_prefix(dir) {
        Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from(word),
        Ok(rest) => PathBuf::from(format!("{word}/{}", rest.display())),
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

/// Weights of other programs in a few facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// The class of the model, as its configuration names it.
    pub class: Option<String>,
    /// Files of weights.
    pub files: usize,
    /// Tensors.
    pub tensors: u64,
    /// Elements of all tensors.
    pub parameters: u64,
    /// Per type: tensors and bytes.
    pub types: BTreeMap<TensorType, (u64, u64)>,
}

impl Weights {
    /// The facts of the checkpoint directory, or the file of weights, at a path on this machine; `None` if
    /// it is neither. Nothing but headers is read.
    ///
    /// # Errors
    /// If it is one, and cannot be read.
    pub fn at(path: &Path) -> Result<Option<Self>, Error> {
        /// What a lone file of weights may end in.
        const LONE: [&str; 5] = ["safetensors", "bin", "pth", "pt", "ckpt"];
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let mut class = None;
        let checkpoint = if path.is_dir() {
            let names = path.read_dir().map_err(|source| Error::read(path, source))?;
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
        } else if LONE.contains(&ending) && path.is_file() {
            // Models of any time have such names too.
            if LocalFile::open(path)?.mapped().starts_with(&gguf::MAGIC) {
                return Ok(None);
            }
            match Checkpoint::open_file(path) {
                Err(_) if ending != LONE[0] => return Ok(None),
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

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.types.values().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }
}

/// Opens far weights, beside whose small files these are.
fn open_far(files: &RepositoryFiles, dir: &Path) -> Result<Checkpoint, Error> {
    let present: BTreeSet<_> = files.names().iter().cloned().collect();
    Checkpoint::open_with(dir, &present, &|name| {
        let failed =
            |error| Error::environment("open", Path::new(name), std::io::Error::other(error));
        files.open(name).map_err(failed)
    })
}

fn is_small(name: &str) -> bool {
    SMALL.iter().any(|end| name.ends_with(end))
}

/// Names and digests of the small files in a directory, in order of name.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn digests_of_small_files(dir: &Path) -> Result<Vec<(String, String)>, Error> {
    let listed = std::fs::read_dir(dir).map_err(|source| Error::read(dir, source))?;
    let mut digests = Vec::new();
    for entry in listed {
        let path = entry.map_err(|source| Error::read(dir, source))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_small(&name) && path.is_file() {
            let bytes = std::fs::read(&path).map_err(|source| Error::read(&path, source))?;
            digests.push((name, sha256(&bytes)));
        }
    }
    digests.sort_unstable();
    Ok(digests)
}
