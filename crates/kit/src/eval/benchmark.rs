//! Multiple-choice benchmarks.

use std::path::{Path, PathBuf};

use gguf_eval::{Answers, Benchmark, Question, RunOptions};
use gguf_store::Progress;

use super::evaluated_model::EvaluatedModel;
use crate::Error;
use crate::run::ExecutorOptions;

/// Questions of a benchmark.
#[derive(Clone, Debug)]
pub struct BenchmarkTask {
    /// File of the questions.
    pub file: PathBuf,
    /// The benchmark.
    pub benchmark: Benchmark,
    /// Selected questions.
    pub questions: Vec<Question>,
    /// Maximum number of tokens of a question; the common prefix of its texts counts once.
    pub max_tokens: usize,
    /// Execution options.
    pub run: RunOptions,
}

impl BenchmarkTask {
    /// Reads a file and draws `count` questions; all if `None`.
    ///
    /// # Errors
    /// If the file cannot be read; as [`Benchmark::read`].
    pub fn open(
        file: &Path,
        benchmark: Benchmark,
        count: Option<usize>,
        max_tokens: usize,
        run: RunOptions,
    ) -> Result<Self, Error> {
        let bytes = std::fs::read(file).map_err(|fault| Error::read(file, fault))?;
        let questions = benchmark.read(&bytes).map_err(|error| error.in_file(file))?;
        let questions = benchmark.draw(questions, count.unwrap_or(usize::MAX));
        Ok(Self { file: file.to_owned(), benchmark, questions, max_tokens, run })
    }
}

/// Evaluates a model on a benchmark. Calls `on_progress` with the result so far after groups of questions.
///
/// # Errors
/// `context-full` if a question is too long; as [`crate::run::load`], [`Benchmark::texts`] and [`gguf_eval::answers`]; if
/// the model has no vocabulary.
pub fn answers(
    source: &str,
    options: &ExecutorOptions,
    task: &BenchmarkTask,
    on_progress: &mut dyn FnMut(&Answers),
    progress: &dyn Progress,
) -> Result<Answers, Error> {
    let model = EvaluatedModel::open(source, options, progress)?;
    let encode = |text: &str| model.encode(text, false);
    let mut questions = Vec::with_capacity(task.questions.len());
    for question in &task.questions {
        let texts = task.benchmark.texts(question, encode);
        let texts = texts.map_err(|error| error.in_file(&task.file))?;
        let (number, tokens, max) = (texts.number, texts.tokens(), task.max_tokens);
        if tokens > max {
            let what = format!("question {number} has {tokens} tokens; expected at most {max}");
            return Err(Error::request("context-full", what, "increase --ctx-size"));
        }
        questions.push(texts);
    }
    progress.begin("reading", questions.iter().map(|texts| texts.read() as u64).sum());
    let found = gguf_eval::answers(model.executor(), &questions, task.run, on_progress, progress);
    found.map_err(|error| error.in_file(source.as_ref()))
}
