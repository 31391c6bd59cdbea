//! Flags of commands that evaluate models on a text.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::eval::{ChunkOptions, PartWriter, RunOptions, Task};
use gguf_kit::quantize::Part;
use gguf_runtime::CacheType;

use crate::failure::Failure;
use crate::force::Force;
use crate::model_args::{PrecisionArg, RunArgs};

/// Evaluation text, and how models process it.
#[derive(clap::Args)]
pub struct EvalArgs {
    /// Evaluation text file.
    #[arg(short, long, value_name = "TEXT", required = true)]
    pub file: Option<PathBuf>,
    /// Context size in tokens. The second half of each chunk is evaluated.
    #[arg(short, long, value_name = "N", default_value = "512")]
    pub ctx_size: NonZeroUsize,
    /// Maximum number of chunks [default: all].
    #[arg(long, value_name = "N")]
    chunks: Option<NonZeroUsize>,
    /// Evaluate overlapping chunks: each begins N tokens after the previous one, is N / 2 tokens longer, and
    /// its last N tokens are evaluated.
    #[arg(long, value_name = "N", alias = "ppl-stride")]
    stride: Option<NonZeroUsize>,
    /// Batch size for prompt processing; affects speed and memory only.
    #[arg(short, long, value_name = "N", default_value = "512")]
    batch_size: NonZeroUsize,
    /// Compute precision: F32 accumulation (exact) or 8-bit activations (fast).
    #[arg(long, value_enum, default_value_t = PrecisionArg::Exact, alias = "arithmetic")]
    pub precision: PrecisionArg,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

impl EvalArgs {
    /// Returns the name of the text file.
    pub fn text(&self) -> String {
        self.inputs().map(|file| file.display().to_string()).collect()
    }

    /// Returns the evaluation task.
    pub fn task(&self) -> Result<Task, Failure> {
        let cut = ChunkOptions {
            len: self.ctx_size.get(),
            count: self.chunks.map(NonZeroUsize::get),
            stride: self.stride.map(NonZeroUsize::get),
        };
        let text = self.file.as_deref().map_or(Ok(String::new()), gguf_kit::read_text)?;
        Ok(Task { text, special: false, cut, run: self.run_options() })
    }

    /// Returns the options of the runtime.
    pub fn run_options(&self) -> RunOptions {
        RunOptions {
            // The evaluation measures weights, not the KV cache.
            cache_type: self.run.cache_type_or(CacheType::F32),
            batch: self.batch_size.get(),
        }
    }

    /// Returns the input files other than models, which outputs must not replace.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.file.as_deref().into_iter()
    }
}

/// Distributed and resumable evaluation.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct EvalOutputArgs {
    /// Evaluate only part I of N of the chunks, for distributed evaluation. `gguf eval-merge` merges the parts.
    #[arg(long, value_name = "I/N", requires = "output")]
    part: Option<Part>,
    /// Save the results of each chunk, for `gguf eval-merge` and --resume.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Resume from the output file.
    #[arg(long, requires = "output")]
    resume: bool,
    #[command(flatten)]
    pub force: Force,
}

impl EvalOutputArgs {
    /// Returns the writer of chunk results.
    pub fn keeper(&self, eval: &EvalArgs, models: &[String]) -> Result<PartWriter, Failure> {
        let Some(path) = &self.output else { return Ok(PartWriter::default()) };
        let part = self.part.unwrap_or(Part::WHOLE);
        let inputs = eval.inputs().chain(models.iter().map(Path::new));
        Ok(PartWriter::new(part, path, self.force.existing(), inputs, self.resume)?)
    }

    /// Turns an interruption into one that can be resumed, if results are saved.
    pub fn paused(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Interrupted if self.output.is_some() => Failure::Paused,
            failure => failure,
        }
    }
}
