//! What models know of a text: perplexity, and how far models are from the one they were made of.

mod compare;
mod exam;
mod keep;
mod merge;
mod subject;

use std::path::Path;

pub use compare::{Against, Compare, Compared, divergence};
pub use exam::{Exam, answers};
use gguf_eval::LogitsWriter;
use gguf_eval::part::{Importance, Perplexities, Tally};
pub use gguf_eval::{
    Answered, Answers, Benchmark, Candidate, Collection, Cut, Divergence, Mean, Miss, Perplexity,
    Question, RunOptions, Spread, Windows,
};
use gguf_graph::OutputKind;
use gguf_quantize::imatrix::Imatrix;
use gguf_store::{Overwrite, Progress};
pub use keep::Keeper;
pub use merge::{Merged, merge};
pub(crate) use subject::{Opened, written};

use crate::Error;
use crate::run::ExecutorOptions;

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

/// A file of logits that is to be written.
#[derive(Clone, Copy)]
pub struct Save<'s> {
    /// The file.
    pub path: &'s Path,
    /// What it may replace.
    pub overwrite: &'s Overwrite,
}

impl Save<'_> {
    fn begin(&self, model: &Opened, windows: &Windows) -> Result<LogitsWriter, Error> {
        let width = model.executor().width(OutputKind::Logits).unwrap_or(0);
        LogitsWriter::create(self.path, self.overwrite, windows, width)
    }
}

/// The perplexity of a model: a file, or the directory of a checkpoint. `each` gets what is known after each
/// window.
///
/// # Errors
/// As [`crate::run::load`], [`Windows::new`] and [`gguf_eval::perplexity()`], if there is no
/// vocabulary, and if files cannot be written.
pub fn perplexity(
    word: &str,
    options: &ExecutorOptions,
    task: &Task,
    save: Option<Save<'_>>,
    keeper: &mut Keeper,
    each: &mut dyn FnMut(&Perplexity),
    progress: &dyn Progress,
) -> Result<Perplexity, Error> {
    let model = Opened::open(word, options, progress)?;
    let windows = model.windows(task)?;
    let asked = keep::asked("perplexity", keep::digest_of_text(task), options, task)?;
    let empty = Tally::Perplexity(Perplexities::default());
    let (number, rest) = keeper.begin(asked, &[&model], windows.count(), &empty)?;
    let windows = windows.only(rest);
    let save = save.map(|save| save.begin(&model, &windows)).transpose()?;
    progress.begin("reading", (windows.count() * (windows.window_len() - 1)) as u64);
    let mut of_window = |window: Perplexity| {
        if let Tally::Perplexity(all) = &mut keeper.portion(number).tally {
            all.add(&window);
            each(all.total());
        }
        keeper.write(false)
    };
    let (executor, run) = (model.executor(), task.run);
    let result =
        gguf_eval::perplexity(executor, &windows, run, save.as_ref(), &mut of_window, progress);
    keeper.end(result.map_err(|error| error.in_file(word.as_ref())))?;
    save.map_or(Ok(()), LogitsWriter::commit)?;
    match &keeper.portion(number).tally {
        Tally::Perplexity(all) => Ok(*all.total()),
        _ => Ok(Perplexity::default()),
    }
}

/// What is done while an importance matrix is collected: it gets the number of windows that were read, and
/// the matrix so far if it asks for it. Its error ends the work.
pub type Each<'e> = dyn FnMut(usize, &dyn Fn() -> Imatrix) -> Result<(), Error> + Send + 'e;

/// What of a text is collected.
#[derive(Clone, Debug, Default)]
pub struct Collect {
    /// What the text is called, and which tensors are summed.
    pub collection: Collection,
    /// Windows to leave out at the beginning.
    pub skip: usize,
}

/// The importance matrix of a model: a file, or the directory of a checkpoint. `each` is called after each
/// window.
///
/// # Errors
/// `text-too-short` if no window is left; as [`crate::run::load`], [`Windows::new`] and
/// [`gguf_eval::imatrix`], if there is no vocabulary, and if files cannot be written.
pub fn imatrix(
    word: &str,
    options: &ExecutorOptions,
    task: &Task,
    collect: &Collect,
    keeper: &mut Keeper,
    each: &mut Each<'_>,
    progress: &dyn Progress,
) -> Result<Imatrix, Error> {
    let Collect { collection, skip } = collect;
    let model = Opened::open(word, options, progress)?;
    let windows = model.windows(task)?;
    let Some(total @ 1..) = windows.count().checked_sub(*skip) else {
        let what = format!("the text has {} windows, {skip} are left out", windows.count());
        return Err(Error::request("text-too-short", what, "take a longer text"));
    };
    let mut asked = keep::asked("importance matrix", keep::digest_of_text(task), options, task)?;
    asked.insert("choice of tensors".to_owned(), collection.output.to_string());
    asked.insert("first window".to_owned(), skip.to_string());
    let (dataset, len) = (collection.dataset.clone(), windows.window_len());
    let empty = Tally::Importance(Importance { dataset, len, ..Default::default() });
    let (number, rest) = keeper.begin(asked, &[&model], total, &empty)?;
    let windows = windows.only(rest.start + skip..rest.end + skip);
    let before = match &keeper.portion(number).tally {
        Tally::Importance(before) => before.clone(),
        _ => Importance::default(),
    };
    progress.begin("reading", (windows.count() * len) as u64);
    let mut of_window = |read: usize, sums: &dyn Fn() -> Importance| {
        if keeper.has_file() {
            keeper.portion(number).tally = Tally::Importance(sums());
            keeper.write(false)?;
        }
        each(read, &|| sums().imatrix())
    };
    let (executor, run) = (model.executor(), task.run);
    let found =
        gguf_eval::imatrix(executor, &windows, run, collection, before, &mut of_window, progress);
    let found = found.map_err(|error| error.in_file(word.as_ref()));
    let imatrix = found.as_ref().map(Importance::imatrix).unwrap_or_default();
    keeper.end(found.map(drop))?;
    Ok(imatrix)
}
