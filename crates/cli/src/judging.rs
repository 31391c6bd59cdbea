//! Flags of the commands that judge models by a text.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::eval::{ChunkOptions, PartWriter, RunOptions, Task};
use gguf_kit::quantize::Part;
use gguf_runtime::CacheType;

use crate::failure::Failure;
use crate::force::Force;
use crate::running::{RunArgs, Sums};

/// A text, and how models read it.
#[derive(clap::Args)]
pub struct JudgeArgs {
    /// The file with the text.
    #[arg(short, long, value_name = "TEXT", required = true)]
    pub file: Option<PathBuf>,
    /// Tokens of a window. The second half of each is predicted.
    #[arg(short, long, value_name = "N", default_value = "512")]
    pub ctx_size: NonZeroUsize,
    /// Windows at most [default: all].
    #[arg(long, value_name = "N")]
    chunks: Option<NonZeroUsize>,
    /// Let windows overlap: each begins N tokens after the one before, is N / 2 longer, and its last N
    /// tokens are predicted.
    #[arg(long, value_name = "N", alias = "ppl-stride")]
    stride: Option<NonZeroUsize>,
    /// Tokens that are computed together; changes nothing but speed and memory.
    #[arg(short, long, value_name = "N", default_value = "512")]
    batch_size: NonZeroUsize,
    /// How products are computed.
    #[arg(long, value_enum, default_value_t = Sums::Exact)]
    pub arithmetic: Sums,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

impl JudgeArgs {
    /// What the file with the text is called.
    pub fn text(&self) -> String {
        self.inputs().map(|file| file.display().to_string()).collect()
    }

    /// What is to be done.
    pub fn task(&self) -> Result<Task, Failure> {
        let cut = ChunkOptions {
            len: self.ctx_size.get(),
            count: self.chunks.map(NonZeroUsize::get),
            stride: self.stride.map(NonZeroUsize::get),
        };
        let text = self.file.as_deref().map_or(Ok(String::new()), gguf_kit::read_text)?;
        Ok(Task { text, special: false, cut, run: self.reading() })
    }

    /// How models read.
    pub fn reading(&self) -> RunOptions {
        RunOptions {
            // What is judged are weights, not caches.
            cache_type: self.run.cache_type_or(CacheType::F32),
            batch: self.batch_size.get(),
        }
    }

    /// The files that are read, beside models: no output may replace them.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.file.as_deref().into_iter()
    }
}

/// What of a run is done, and where it is kept.
#[derive(clap::Args)]
// Its group would bear the name of the one that it is part of.
#[group(skip)]
pub struct KeepArgs {
    /// Read the I-th of N shares of the windows only, for several machines: `gguf eval-merge` puts them
    /// together.
    #[arg(long, value_name = "I/N", requires = "output")]
    part: Option<Part>,
    /// Keep what each window gives in a file, for `gguf eval-merge`, and to go on with.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Go on where the output file ends.
    #[arg(long, requires = "output")]
    resume: bool,
    #[command(flatten)]
    pub force: Force,
}

impl KeepArgs {
    /// What keeps a run of these models.
    pub fn keeper(&self, judge: &JudgeArgs, models: &[String]) -> Result<PartWriter, Failure> {
        let Some(path) = &self.output else { return Ok(PartWriter::default()) };
        let part = self.part.unwrap_or(Part::WHOLE);
        let inputs = judge.inputs().chain(models.iter().map(Path::new));
        Ok(PartWriter::new(part, path, self.force.existing(), inputs, self.resume)?)
    }

    /// A failure, if what was done before is kept.
    pub fn paused(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Interrupted if self.output.is_some() => Failure::Paused,
            failure => failure,
        }
    }
}
