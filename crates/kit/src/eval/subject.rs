//! Models that are judged: files, and checkpoints, which are converted first.

use std::sync::Arc;

use gguf_eval::{Subject, Windows};
use gguf_pipeline::Job;
use gguf_remote::{Location, RepositoryFiles};
use gguf_runtime::Executor;
use gguf_store::{Model, Overwrite, Progress, ShardSet};
use gguf_tokenizer::{EncodeOptions, Tokenizer};
use tempfile::TempDir;

use super::Task;
use crate::convert::{self, Kind, Plan};
use crate::run::{ExecutorOptions, LoadedModel, load_model};
use crate::{Error, open};
use gguf_store::scratch::{self, outside};

/// A model that is ready to be judged.
pub(crate) struct Opened {
    word: String,
    loaded: LoadedModel,
    model: Model,
    pub tokenizer: Tokenizer,
    /// What a checkpoint or a far model became, until nobody reads it any more.
    _scratch: Option<TempDir>,
}

impl Opened {
    /// Opens the model that a word names. A directory or a repository on the hub with a checkpoint and
    /// without a GGUF is converted, every weight as it is, in a scratch directory.
    pub fn open(
        word: &str,
        options: &ExecutorOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        Self::open_or(word, options, progress, |opened| Ok((opened.into_model(), None)))
    }

    /// The same for work that reads the weights again and again: a far model is fetched once, into a
    /// scratch directory.
    pub fn fetch(
        word: &str,
        options: &ExecutorOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        Self::open_or(word, options, progress, |opened| {
            if opened.transferred().is_none() {
                return Ok((opened.into_model(), None));
            }
            let model = opened.into_model();
            progress.begin("fetching", model.byte_len());
            written(&Job::copy(&model), progress)
        })
    }

    fn open_or(
        word: &str,
        options: &ExecutorOptions,
        progress: &dyn Progress,
        kept: impl FnOnce(crate::Opened) -> Result<(Model, Option<TempDir>), Error>,
    ) -> Result<Self, Error> {
        let (model, scratch) = match open(word) {
            Ok(opened) => kept(opened)?,
            Err(_) if is_checkpoint(word) => convert(word, progress)?,
            Err(error) => return Err(error),
        };
        let loaded = load_model(&model, Vec::new(), word, options)?;
        let how = gguf_tokenizer::TokenizerOptions::default();
        let tokenizer = Tokenizer::from_metadata(&loaded.metadata, how)
            .map_err(|error| error.in_file(word.as_ref()))?;
        Ok(Self { word: word.to_owned(), loaded, model, tokenizer, _scratch: scratch })
    }

    /// What the user calls it.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// A digest by which other machines know the model, of its header and some rows of each tensor.
    pub fn digest(&self) -> Result<String, Error> {
        Job::copy(&self.model).fingerprint()
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    pub fn executor(&self) -> &Arc<Executor> {
        &self.loaded.executor
    }

    pub fn subject(&self) -> Subject {
        Subject { name: self.word.clone(), executor: self.loaded.executor.clone() }
    }

    /// The text of a task in windows.
    pub fn windows(&self, task: &Task) -> Result<Windows, Error> {
        let ids = self.encode(&task.text, task.special);
        Windows::new(ids, self.first(), task.cut)
    }

    /// The token that the model wants at the beginning.
    pub fn first(&self) -> Option<u32> {
        self.tokenizer.first_token()
    }

    /// The tokens of a text, with what the model wants around it.
    pub fn encode(&self, text: &str, parse_special: bool) -> Vec<u32> {
        self.tokenizer.encode(text, EncodeOptions { add_special: true, parse_special })
    }

    /// That a model has the tokens of this one: then ids mean the same.
    pub fn require_vocabulary(&self, model: &Self) -> Result<(), Error> {
        let (ours, theirs) = (&self.tokenizer, &model.tokenizer);
        let differs = |id: &u32| ours.token_text(*id) != theirs.token_text(*id);
        let Some(id) = (0..ours.len().max(theirs.len()) as u32).find(differs) else {
            return Ok(());
        };
        let said =
            |text: Option<&[u8]>| text.map_or("none".into(), String::from_utf8_lossy).into_owned();
        let (of_model, of_reference) = (said(theirs.token_text(id)), said(ours.token_text(id)));
        let what = format!(
            "token {id} of {} is {of_model:?}, and {of_reference:?} in {}",
            model.word, self.word
        );
        Err(Error::request("vocabulary-differs", what, "compare models of one vocabulary"))
    }
}

/// The name of what a checkpoint becomes.
const MODEL: &str = "model.gguf";

/// What every checkpoint has.
const CONFIG: &str = "config.json";

/// Whether a word names a directory or a repository that holds a checkpoint, and no GGUF.
fn is_checkpoint(word: &str) -> bool {
    match Location::parse(word) {
        Ok(Location::Path(path)) => path.join(CONFIG).is_file() && ShardSet::find(&path).is_err(),
        Ok(_) => {
            RepositoryFiles::list(word, gguf_remote::RemoteOptions::from_env()).is_ok_and(|files| {
                let names = files.names();
                names.iter().any(|name| name == CONFIG)
                    && !names.iter().any(|name| name.ends_with(".gguf"))
            })
        }
        Err(_) => false,
    }
}

fn convert(word: &str, progress: &dyn Progress) -> Result<(Model, Option<TempDir>), Error> {
    let kind = convert::kind(word, None)?;
    if kind != Kind::Checkpoint {
        let what = format!("{word} holds no whole model");
        return Err(Error::request("source-unclear", what, "name the directory of a model"));
    }
    let plan = Plan::new(word, kind, &convert::Options::default(), progress)?;
    written(&plan.outputs[0].job, progress)
}

/// A model in a scratch directory.
pub(crate) fn written(
    job: &Job,
    progress: &dyn Progress,
) -> Result<(Model, Option<TempDir>), Error> {
    let scratch = scratch::directory()?;
    let path = scratch.path().join(MODEL);
    let model = job.write(&path, &Overwrite::default(), progress).and_then(|()| Model::open(&path));
    Ok((model.map_err(|error| outside(error, scratch.path()))?, Some(scratch)))
}
