//! What models know of a text: perplexity, and how far models are from the one they were made of.

use std::sync::Arc;

use gguf::Metadata;
pub use gguf_eval::{
    Collection, Cut, Divergence, Each, Mean, Perplexity, RunOptions, Spread, Windows,
};
use gguf_quantize::imatrix::Imatrix;
use gguf_runtime::Executor;
use gguf_store::Progress;
use gguf_tokenizer::{Encode, Tokenizer};

use crate::Error;
use crate::run::{Options, open_to_run};

/// A text, how it is cut, and how models read it.
#[derive(Clone, Debug)]
pub struct Task {
    /// The text.
    pub text: String,
    /// Whether the texts of control tokens in it are these tokens.
    pub special: bool,
    /// How it is cut.
    pub cut: Cut,
    /// How models read it.
    pub run: RunOptions,
}

/// The text of a task in windows.
pub(crate) fn windows(tokenizer: &Tokenizer, task: &Task) -> Result<Windows, Error> {
    let how = Encode { add_special: true, parse_special: task.special };
    let ids = tokenizer.encode(&task.text, how);
    let first = if tokenizer.adds_first() { ids.first().copied() } else { None };
    Windows::new(ids, first, task.cut)
}

pub(crate) fn tokenizer(metadata: &Metadata) -> Result<Tokenizer, Error> {
    Tokenizer::from_metadata(metadata, gguf_tokenizer::Options::default())
}

/// The perplexity of a model. `each` gets what is known after each window.
///
/// # Errors
/// As [`open_to_run`], [`Windows::new`] and [`gguf_eval::perplexity`], and if there is no vocabulary.
pub fn perplexity(
    word: &str,
    options: &Options,
    task: &Task,
    each: &mut dyn FnMut(&Perplexity),
    progress: &dyn Progress,
) -> Result<Perplexity, Error> {
    let running = open_to_run(word, options)?;
    let windows = windows(&tokenizer(&running.metadata)?, task)?;
    progress.begin("reading", (windows.count() * (windows.window_len() - 1)) as u64);
    let found = gguf_eval::perplexity(&running.executor, &windows, task.run, each, progress);
    found.map_err(|error| error.in_file(word.as_ref()))
}

/// The importance matrix of a model. `each` is called after each window.
///
/// # Errors
/// As [`open_to_run`], [`Windows::new`] and [`gguf_eval::imatrix`], and if there is no vocabulary.
pub fn imatrix(
    word: &str,
    options: &Options,
    task: &Task,
    collection: &Collection,
    each: &mut Each<'_>,
    progress: &dyn Progress,
) -> Result<Imatrix, Error> {
    let running = open_to_run(word, options)?;
    let windows = windows(&tokenizer(&running.metadata)?, task)?;
    let count = windows.count().saturating_sub(collection.skip);
    progress.begin("reading", (count * windows.window_len()) as u64);
    let executor = &running.executor;
    let found = gguf_eval::imatrix(executor, &windows, task.run, collection, each, progress);
    found.map_err(|error| error.in_file(word.as_ref()))
}

/// How far models are from a reference. `each` gets what is known after each window.
///
/// # Errors
/// `vocabulary-differs` if a model has other tokens than the reference; else as [`perplexity`].
pub fn divergence(
    reference: &str,
    models: &[String],
    options: &Options,
    task: &Task,
    each: &mut dyn FnMut(&[Divergence]),
    progress: &dyn Progress,
) -> Result<Vec<Divergence>, Error> {
    let original = open_to_run(reference, options)?;
    let vocabulary = tokenizer(&original.metadata)?;
    let windows = windows(&vocabulary, task)?;
    let mut executors: Vec<Arc<Executor>> = Vec::with_capacity(models.len());
    for word in models {
        let running = open_to_run(word, options)?;
        same_vocabulary(&vocabulary, &tokenizer(&running.metadata)?, word)?;
        executors.push(running.executor);
    }
    let read = windows.count() * (windows.window_len() - 1) * (1 + models.len());
    progress.begin("reading", read as u64);
    gguf_eval::divergence(&original.executor, &executors, &windows, task.run, each, progress)
}

/// That a model has the tokens of the reference: then ids mean the same.
fn same_vocabulary(reference: &Tokenizer, model: &Tokenizer, word: &str) -> Result<(), Error> {
    let said =
        |text: Option<&[u8]>| text.map_or("none".into(), String::from_utf8_lossy).into_owned();
    let differs = |id: &u32| reference.token_text(*id) != model.token_text(*id);
    let Some(id) = (0..reference.len().max(model.len()) as u32).find(differs) else {
        return Ok(());
    };
    let (of_model, of_reference) = (said(model.token_text(id)), said(reference.token_text(id)));
    let what =
        format!("token {id} of {word} is {of_model:?}, and {of_reference:?} in the reference");
    Err(Error::request("vocabulary-differs", what, "compare models of one vocabulary"))
}
