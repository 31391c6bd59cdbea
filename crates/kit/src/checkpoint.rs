//! Checkpoints from wherever the user says: a directory, a lone file, a repository on the hub.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::modules::Module;
use gguf_remote::{Files, Location, Options};
use gguf_store::Source;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::Error;

/// What the small files of a checkpoint end in: configurations, tokenizers, the model card.
const SMALL: [&str; 6] = [".json", ".jinja", ".md", ".model", ".tiktoken", ".txt"];

/// An open checkpoint.
pub struct Opened {
    /// Its tensors.
    pub checkpoint: Checkpoint,
    /// The directory with its small files.
    pub dir: PathBuf,
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
                Ok(Self { checkpoint: Checkpoint::open(&dir)?, dir, temporary: None })
            }
            _ => {
                let files = Files::list(word, Options::from_env())?;
                let mut opened = Self::fetch(&files)?;
                opened.checkpoint = open_far(&files, &opened.dir)?;
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
                Ok(Self { checkpoint: Checkpoint::without_weights(), dir, temporary: None })
            }
            _ => Self::fetch(&Files::list(word, Options::from_env())?),
        }
    }

    /// Where to write if the user does not say: beside a checkpoint that is here.
    pub(crate) fn output_dir(&self) -> &Path {
        if self.temporary.is_some() { Path::new(".") } else { &self.dir }
    }

    /// Fetches the small files.
    fn fetch(files: &Files) -> Result<Self, Error> {
        let failed = |source| Error::environment("write", Path::new("a temporary"), source);
        let temporary = tempfile::tempdir().map_err(failed)?;
        // The name of the model is taken from that of its directory where no card says it.
        let name = files.repository().rsplit('/').next().unwrap_or_default();
        let dir = temporary.path().join(name);
        std::fs::create_dir(&dir).map_err(failed)?;
        for name in files.names().iter().filter(|name| is_small(name)) {
            std::fs::write(dir.join(name), files.fetch(name)?).map_err(failed)?;
        }
        for module in Module::read(&dir)?.iter().filter(|module| module.stands_behind()) {
            let folder = module.folder()?;
            std::fs::create_dir_all(dir.join(folder)).map_err(failed)?;
            let name = format!("{folder}/config.json");
            std::fs::write(dir.join(&name), files.fetch(&name)?).map_err(failed)?;
        }
        Ok(Self { checkpoint: Checkpoint::without_weights(), dir, temporary: Some(temporary) })
    }
}

/// Opens far weights, beside whose small files these are.
fn open_far(files: &Files, dir: &Path) -> Result<Checkpoint, Error> {
    let present: BTreeSet<_> = files.names().iter().cloned().collect();
    Checkpoint::open_with(dir, &present, &|name| {
        let failed =
            |error| Error::environment("open", Path::new(name), std::io::Error::other(error));
        Ok(Arc::<dyn Source>::from(files.open(name).map_err(failed)?))
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
            let digest = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            digests.push((name, digest));
        }
    }
    digests.sort_unstable();
    Ok(digests)
}
