//! Flags of the commands that judge models by a text.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::eval::{Cut, RunOptions, Task};
use gguf_runtime::CacheType;

use crate::failure::Failure;
use crate::running::{RunArgs, Sums};

/// A text, and how models read it.
#[derive(clap::Args)]
pub struct JudgeArgs {
    /// The file with the text.
    #[arg(short, long, value_name = "TEXT")]
    file: PathBuf,
    /// Tokens of a window. The second half of each is predicted.
    #[arg(short, long, value_name = "N", default_value = "512")]
    ctx_size: NonZeroUsize,
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
    /// The file with the text.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What is to be done.
    pub fn task(&self) -> Result<Task, Failure> {
        let cut = Cut {
            len: self.ctx_size.get(),
            windows: self.chunks.map(NonZeroUsize::get),
            stride: self.stride.map(NonZeroUsize::get),
        };
        let run = RunOptions {
            // What is judged are weights, not caches.
            cache_type: self.run.cache_type_or(CacheType::F32),
            batch: self.batch_size.get(),
        };
        Ok(Task { text: gguf_kit::read_text(&self.file)?, special: false, cut, run })
    }
}
