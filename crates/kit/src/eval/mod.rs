//! Evaluation: perplexity, KL divergence, benchmarks, importance matrices.

mod benchmark;
mod compare;
mod evaluated_model;
mod merge;
mod part_writer;

use std::path::Path;

pub use benchmark::{BenchmarkTask, answers};
pub use compare::{Against, CompareOptions, ComparisonReport, divergence};
pub(crate) use evaluated_model::EvaluatedModel;
use gguf_eval::LogitsWriter;
use gguf_eval::part::{Importance, Perplexities, Tally};
pub use gguf_eval::{
    Answered, Answers, Benchmark, Candidate, ChunkOptions, Chunks, Collection, Divergence, Mean,
    Miss, Perplexity, Question, RunOptions, Spread,
};
use gguf_graph::OutputKind;
use gguf_quantize::imatrix::Imatrix;
use gguf_store::{Overwrite, Progress};
pub use merge::{Merged, merge};
pub use part_writer::PartWriter;

use crate::Error;
use crate::run::ExecutorOptions;

/// An evaluation text with its chunks.
#[derive(Clone, Debug)]
pub struct Task {
    /// The text.
    pub text: String,
    /// Parses special tokens in the text.
    pub special: bool,
    /// Chunks of the text.
    pub cut: ChunkOptions,
    /// Execution options.
    pub run: RunOptions,
}

/// Destination of a logits file.
#[derive(Clone, Copy)]
pub struct SaveLogits<'s> {
    /// Path of the file.
    pub path: &'s Path,
    /// Policy for existing files.
    pub overwrite: &'s Overwrite,
}

impl SaveLogits<'_> {
    fn begin(&self, model: &EvaluatedModel, chunks: &Chunks) -> Result<LogitsWriter, Error> {
        let width = model.executor().width(OutputKind::Logits).unwrap_or(0);
        LogitsWriter::create(self.path, self.overwrite, chunks, width)
    }
}

/// Computes the perplexity of a model or checkpoint. Calls `on_chunk` with the result so far after each chunk.
///
/// # Errors
/// As [`crate::run::load`], [`Chunks::new`] and [`gguf_eval::perplexity()`]; if the model has no vocabulary, or files
/// cannot be written.
pub fn perplexity(
    source: &str,
    options: &ExecutorOptions,
    task: &Task,
    save: Option<SaveLogits<'_>>,
    part_writer: &mut PartWriter,
    on_chunk: &mut dyn FnMut(&Perplexity),
    progress: &dyn Progress,
) -> Result<Perplexity, Error> {
    let model = EvaluatedModel::open(source, options, progress)?;
    let chunks = model.chunks(task)?;
    let identity =
        part_writer::identity("perplexity", part_writer::text_digest(task), options, task)?;
    let empty = Tally::Perplexity(Perplexities::default());
    let (number, rest) = part_writer.begin(identity, &[&model], chunks.count(), &empty)?;
    let chunks = chunks.only(rest);
    let save = save.map(|save| save.begin(&model, &chunks)).transpose()?;
    progress.begin("reading", (chunks.count() * (chunks.chunk_len() - 1)) as u64);
    let mut on_chunk = |chunk: Perplexity| {
        if let Tally::Perplexity(all) = &mut part_writer.portion(number).tally {
            all.add(&chunk);
            on_chunk(all.total());
        }
        part_writer.write(false)
    };
    let (executor, run) = (model.executor(), task.run);
    let result =
        gguf_eval::perplexity(executor, &chunks, run, save.as_ref(), &mut on_chunk, progress);
    part_writer.end(result.map_err(|error| error.in_file(source.as_ref())))?;
    save.map_or(Ok(()), LogitsWriter::commit)?;
    match &part_writer.portion(number).tally {
        Tally::Perplexity(all) => Ok(*all.total()),
        _ => Ok(Perplexity::default()),
    }
}

/// Receives the number of finished chunks, their perplexity if wanted, and a function that returns the importance matrix
/// so far. An error stops the work.
pub type OnImatrixChunk<'e> =
    dyn FnMut(usize, Option<&Perplexity>, &dyn Fn() -> Imatrix) -> Result<(), Error> + Send + 'e;

/// Options of an importance matrix.
#[derive(Clone, Debug, Default)]
pub struct ImatrixOptions {
    /// Name of the text, and tensors.
    pub collection: Collection,
    /// Number of chunks to skip at the beginning.
    pub skip: usize,
    /// Importance matrix of a run that this one continues. It must be of the same model, text and settings.
    pub resumed: Option<Imatrix>,
}

/// Collects the importance matrix of a model or checkpoint. Calls `on_chunk` after each chunk.
///
/// # Errors
/// `text-too-short` if all chunks are skipped; as [`crate::run::load`], [`Chunks::new`] and [`gguf_eval::imatrix`]; if
/// the model has no vocabulary, or files cannot be written.
pub fn imatrix(
    source: &str,
    options: &ExecutorOptions,
    task: &Task,
    imatrix_options: &ImatrixOptions,
    part_writer: &mut PartWriter,
    on_chunk: &mut OnImatrixChunk<'_>,
    progress: &dyn Progress,
) -> Result<Imatrix, Error> {
    let ImatrixOptions { collection, skip, resumed } = imatrix_options;
    let model = EvaluatedModel::open(source, options, progress)?;
    let chunks = model.chunks(task)?;
    let Some(total @ 1..) = chunks.count().checked_sub(*skip) else {
        let what = format!("the text has {} chunks, {skip} are skipped", chunks.count());
        return Err(Error::request("text-too-short", what, "use a longer text"));
    };
    let mut identity =
        part_writer::identity("importance matrix", part_writer::text_digest(task), options, task)?;
    identity.insert("choice of tensors".to_owned(), collection.output.to_string());
    let fingerprint = part_writer::fingerprint(&identity, &model.digest()?, task.cut.len);
    if let Some(resumed) = resumed {
        require_same_run(resumed, &fingerprint)?;
    }
    identity.insert(part_writer::FIRST.to_owned(), skip.to_string());
    let (dataset, len) = (collection.dataset.clone(), chunks.chunk_len());
    let empty = Tally::Importance(Importance { dataset, len, ..Default::default() });
    let (number, rest) = part_writer.begin(identity, &[&model], total, &empty)?;
    let chunks = chunks.only(rest.start + skip..rest.end + skip);
    let before = match &part_writer.portion(number).tally {
        Tally::Importance(before) => before.clone(),
        _ => Importance::default(),
    };
    progress.begin("reading", (chunks.count() * len) as u64);
    let mut on_chunk =
        |read: usize, perplexity: Option<&Perplexity>, sums: &dyn Fn() -> Importance| {
            if part_writer.has_file() {
                part_writer.portion(number).tally = Tally::Importance(sums());
                part_writer.write(false)?;
            }
            on_chunk(read, perplexity, &|| Imatrix {
                fingerprint: Some(fingerprint.clone()),
                ..sums().imatrix()
            })
        };
    let (executor, run) = (model.executor(), task.run);
    let found =
        gguf_eval::imatrix(executor, &chunks, run, collection, before, &mut on_chunk, progress);
    let found = found.map_err(|error| error.in_file(source.as_ref()));
    let imatrix = found.as_ref().map(Importance::imatrix).unwrap_or_default();
    part_writer.end(found.map(drop))?;
    Ok(Imatrix { fingerprint: Some(fingerprint.clone()), ..imatrix })
}

/// Fails unless an importance matrix was collected by a run with this fingerprint.
fn require_same_run(imatrix: &Imatrix, fingerprint: &str) -> Result<(), Error> {
    let what = match &imatrix.fingerprint {
        Some(found) if found == fingerprint => return Ok(()),
        Some(_) => {
            "the importance matrix was collected from another model or text, or with other settings"
        }
        None => "the importance matrix does not say from which model and text it was collected",
    };
    let help =
        "start again with another output, or combine finished importance matrices with --in-file";
    Err(Error::request("imatrix-other-run", what, help))
}
