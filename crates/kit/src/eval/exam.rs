//! Questions that models answer.

use std::path::{Path, PathBuf};

use gguf_eval::{Answers, Benchmark, Question, RunOptions};
use gguf_store::Progress;

use super::subject::Opened;
use crate::Error;
use crate::run::ExecutorOptions;

/// Questions, and how models read them.
#[derive(Clone, Debug)]
pub struct Exam {
    /// The file with the questions.
    pub file: PathBuf,
    /// What they are.
    pub benchmark: Benchmark,
    /// Those that are asked.
    pub questions: Vec<Question>,
    /// Tokens of a question at most, what its texts begin with counted once.
    pub room: usize,
    /// How models read them.
    pub run: RunOptions,
}

impl Exam {
    /// Reads a file, and draws so many of its questions; all of them without a number.
    ///
    /// # Errors
    /// If it cannot be read, and as [`Benchmark::read`].
    pub fn open(
        file: &Path,
        benchmark: Benchmark,
        count: Option<usize>,
        room: usize,
        run: RunOptions,
    ) -> Result<Self, Error> {
        let bytes = std::fs::read(file).map_err(|fault| Error::read(file, fault))?;
        let questions = benchmark.read(&bytes).map_err(|error| error.in_file(file))?;
        let questions = benchmark.draw(questions, count.unwrap_or(usize::MAX));
        Ok(Self { file: file.to_owned(), benchmark, questions, room, run })
    }
}

/// How many questions a model answers. `each` gets what is known after some of them.
///
/// # Errors
/// `context-full` if a question has no room; else as [`crate::run::load`], [`Benchmark::texts`] and
/// [`gguf_eval::answers`], and if there is no vocabulary.
pub fn answers(
    word: &str,
    options: &ExecutorOptions,
    exam: &Exam,
    each: &mut dyn FnMut(&Answers),
    progress: &dyn Progress,
) -> Result<Answers, Error> {
    let model = Opened::open(word, options, progress)?;
    let encode = |text: &str| model.encode(text, false);
    let mut questions = Vec::with_capacity(exam.questions.len());
    for question in &exam.questions {
        let texts = exam.benchmark.texts(question, encode);
        let texts = texts.map_err(|error| error.in_file(&exam.file))?;
        let (number, tokens, room) = (texts.number, texts.tokens(), exam.room);
        if tokens > room {
            let what = format!("question {number} has {tokens} tokens, there is room for {room}");
            return Err(Error::request("context-full", what, "make --ctx-size larger"));
        }
        questions.push(texts);
    }
    progress.begin("reading", questions.iter().map(|texts| texts.read() as u64).sum());
    let found = gguf_eval::answers(model.executor(), &questions, exam.run, each, progress);
    found.map_err(|error| error.in_file(word.as_ref()))
}
