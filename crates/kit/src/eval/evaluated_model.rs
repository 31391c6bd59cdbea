//! Evaluated models: GGUF models, and checkpoints, which are converted first.

use std::sync::Arc;

use gguf_eval::{Chunks, Subject};
use gguf_pipeline::Job;
use gguf_remote::{Location, RepositoryFiles};
use gguf_runtime::Executor;
use gguf_store::{Model, Progress, ShardSet};
use gguf_tokenizer::{EncodeOptions, Tokenizer};
use tempfile::TempDir;

use super::Task;
use crate::convert::{self, Kind, Plan};
use crate::run::{ExecutorOptions, LoadedModel, load_model};
use crate::{Error, open, redact};

/// A model that is loaded for evaluation.
pub(crate) struct EvaluatedModel {
    source: String,
    loaded: LoadedModel,
    model: Model,
    pub tokenizer: Tokenizer,
    /// Directory of the converted or downloaded model.
    _scratch: Option<TempDir>,
}

impl EvaluatedModel {
    /// Loads the model that `source` names. A checkpoint is converted without changing weights in a temporary directory.
    pub fn open(
        source: &str,
        options: &ExecutorOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        Self::open_or(source, options, progress, |opened| Ok((opened.into_model(), None)))
    }

    /// Loads a model whose weights are read several times: a remote model is downloaded to a temporary directory.
    pub fn fetch(
        source: &str,
        options: &ExecutorOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        Self::open_or(source, options, progress, |opened| {
            if opened.transferred().is_none() {
                return Ok((opened.into_model(), None));
            }
            let model = opened.into_model();
            progress.begin("fetching", model.byte_len());
            let (model, scratch) = Job::copy(&model).write_temporary(progress)?;
            Ok((model, Some(scratch)))
        })
    }

    fn open_or(
        source: &str,
        options: &ExecutorOptions,
        progress: &dyn Progress,
        local: impl FnOnce(crate::Opened) -> Result<(Model, Option<TempDir>), Error>,
    ) -> Result<Self, Error> {
        let (model, scratch) = match open(source) {
            Ok(opened) => local(opened)?,
            Err(_) if is_checkpoint(source) => {
                let (model, scratch) = convert(source, progress)?;
                (model, Some(scratch))
            }
            Err(error) => return Err(error),
        };
        let loaded = load_model(&model, Vec::new(), source, options)?;
        let tokenizer = Tokenizer::from_metadata(&loaded.metadata, Default::default())
            .map_err(|error| error.in_file(source.as_ref()))?;
        Ok(Self { source: redact(source), loaded, model, tokenizer, _scratch: scratch })
    }

    /// Returns the source as the user gave it, without secrets.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns a digest of the header and a sample of rows of each tensor, which identifies the model on other machines.
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
        Subject { name: self.source.clone(), executor: self.loaded.executor.clone() }
    }

    /// Returns the chunks of the text of a task.
    pub fn chunks(&self, task: &Task) -> Result<Chunks, Error> {
        let ids = self.encode(&task.text, task.special);
        Chunks::new(ids, self.first(), task.cut)
    }

    /// Returns the token that the model expects at the start of a text.
    pub fn first(&self) -> Option<u32> {
        self.tokenizer.first_token()
    }

    /// Tokenizes a text, with the special tokens that the model adds.
    pub fn encode(&self, text: &str, parse_special: bool) -> Vec<u32> {
        self.tokenizer.encode(text, EncodeOptions { add_special: true, parse_special })
    }

    /// Refuses a model with another vocabulary.
    pub fn require_vocabulary(&self, model: &Self) -> Result<(), Error> {
        let (ours, theirs) = (&self.tokenizer, &model.tokenizer);
        let differs = |id: &u32| ours.token_text(*id) != theirs.token_text(*id);
        let Some(id) = (0..ours.len().max(theirs.len()) as u32).find(differs) else {
            return Ok(());
        };
        let shown =
            |text: Option<&[u8]>| text.map_or("none".into(), String::from_utf8_lossy).into_owned();
        let (of_model, of_reference) = (shown(theirs.token_text(id)), shown(ours.token_text(id)));
        let what = format!(
            "token {id} of {} is {of_model:?}, and {of_reference:?} in {}",
            model.source, self.source
        );
        Err(Error::request("vocabulary-differs", what, "compare models with the same vocabulary"))
    }
}

/// A file that every checkpoint has.
const CONFIG: &str = "config.json";

/// Whether a source is a directory or repository with a checkpoint and without a GGUF.
fn is_checkpoint(source: &str) -> bool {
    match Location::parse(source) {
        Ok(Location::Path(path)) => path.join(CONFIG).is_file() && ShardSet::find(&path).is_err(),
        Ok(_) => RepositoryFiles::list(source, gguf_remote::RemoteOptions::from_env()).is_ok_and(
            |files| {
                let names = files.names();
                names.iter().any(|name| name == CONFIG)
                    && !names.iter().any(|name| name.ends_with(".gguf"))
            },
        ),
        Err(_) => false,
    }
}

fn convert(source: &str, progress: &dyn Progress) -> Result<(Model, TempDir), Error> {
    let kind = convert::kind(source, None)?;
    if kind != Kind::Checkpoint {
        let what = format!("{source} is not a complete model");
        return Err(Error::request("source-unclear", what, "name the directory of a model"));
    }
    let plan = Plan::new(source, kind, &convert::ConvertOptions::default(), progress)?;
    plan.outputs[0].job.write_temporary(progress)
}
