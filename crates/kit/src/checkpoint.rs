//! Checkpoints from wherever the user says: a directory, a lone file, a repository on the hub.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::modules::Module;
use gguf_remote::{Files, Location, Options};
use gguf_store::Source;
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
            _ => Self::fetch(&Files::list(word, Options::from_env())?),
        }
    }

    /// Where to write if the user does not say: beside a checkpoint that is here.
    pub(crate) fn output_dir(&self) -> &Path {
        if self.temporary.is_some() { Path::new(".") } else { &self.dir }
    }

    fn fetch(files: &Files) -> Result<Self, Error> {
        let failed = |source| Error::environment("write", Path::new("a temporary"), source);
        let temporary = tempfile::tempdir().map_err(failed)?;
        // The name of the model is taken from that of its directory where no card says it.
        let name = files.repository().rsplit('/').next().unwrap_or_default();
        let dir = temporary.path().join(name);
        std::fs::create_dir(&dir).map_err(failed)?;
        for name in files.names().iter().filter(|name| SMALL.iter().any(|end| name.ends_with(end)))
        {
            std::fs::write(dir.join(name), files.fetch(name)?).map_err(failed)?;
        }
        for module in Module::read(&dir)?.iter().filter(|module| module.stands_behind()) {
            let folder = module.folder()?;
            std::fs::create_dir_all(dir.join(folder)).map_err(failed)?;
            let name = format!("{folder}/config.json");
            std::fs::write(dir.join(&name), files.fetch(&name)?).map_err(failed)?;
        }
        let present: BTreeSet<_> = files.names().iter().cloned().collect();
        let checkpoint = Checkpoint::open_with(&dir, &present, &|name| {
            let failed =
                |error| Error::environment("open", Path::new(name), std::io::Error::other(error));
            Ok(Arc::<dyn Source>::from(files.open(name).map_err(failed)?))
        })?;
        Ok(Self { checkpoint, dir, temporary: Some(temporary) })
    }
}
