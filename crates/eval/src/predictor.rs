//! Execution of a model on chunks.

use std::ops::Range;
use std::sync::Arc;

use gguf::{Error, Finding};
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Observer, Token, Value};
use gguf_store::Progress;

use crate::Chunks;
use crate::nan_origin::{NanOrigin, NanTracker};

/// Execution options of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Element type of the KV cache.
    pub cache_type: CacheType,
    /// Batch size in tokens. It does not affect results.
    pub batch: usize,
}

impl Default for RunOptions {
    /// Returns an F32 KV cache, so that only the weights are rounded, and a batch size of 512.
    fn default() -> Self {
        Self { cache_type: CacheType::F32, batch: 512 }
    }
}

/// Batch size of the search for NaN.
const NAN_BATCH: usize = 32;

/// Approximate maximum size of the logits of a batch in bytes.
const MAX_LOGITS: usize = 128 << 20;

/// Divides the evaluated positions of a chunk into batches.
pub(crate) fn batches(
    chunks: &Chunks,
    executors: &[Arc<Executor>],
    options: RunOptions,
) -> Vec<Range<usize>> {
    // The last token of a chunk is only a target.
    batch_ranges(chunks.positions().end, executors, options)
}

/// Divides tokens into batches whose logits of all models fit into memory.
pub(crate) fn batch_ranges(
    tokens: usize,
    executors: &[Arc<Executor>],
    options: RunOptions,
) -> Vec<Range<usize>> {
    let row = |executor: &Arc<Executor>| 4 * executor.width(OutputKind::Logits).unwrap_or(1);
    let rows: usize = executors.iter().map(row).sum();
    let len = options.batch.min(MAX_LOGITS / rows.max(1)).max(32);
    (0..tokens).step_by(len).map(|start| start..tokens.min(start + len)).collect()
}

/// Checks that a model has a logit for every token of a text; `largest` is the largest id.
///
/// # Errors
/// `tensor-shape` if the output projection has fewer rows than the text needs.
pub(crate) fn require_logits(executor: &Executor, largest: Option<u32>) -> Result<(), Error> {
    let (Some(id), Some(width)) = (largest, executor.width(OutputKind::Logits)) else {
        return Ok(());
    };
    if (id as usize) < width {
        return Ok(());
    }
    let message = format!("the model has logits of {width} tokens, and the text has token {id}");
    let finding = Finding::error("tensor-shape", message);
    Err(finding.help("the output projection is incomplete: convert the model again").into())
}

pub(crate) struct Predictor {
    context: Context,
}

impl Predictor {
    pub fn new(
        executor: &Arc<Executor>,
        chunks: &Chunks,
        options: RunOptions,
    ) -> Result<Self, Error> {
        if executor.graph().encoder().is_some() {
            let what = "a model with an encoder cannot be evaluated on text alone";
            let help = "use a model without an encoder; for Whisper, `gguf imatrix MODEL -f AUDIO --hessian` \
                        collects Hessians";
            return Err(Error::request("encoder-needed", what, help));
        }
        let context = ContextOptions {
            tokens: chunks.chunk_len(),
            batch: options.batch,
            cache_type: options.cache_type,
            ..Default::default()
        };
        Ok(Self { context: Context::new(executor.clone(), context)? })
    }

    /// Runs the next batch of a chunk. Returns the logits of the positions in `evaluated`.
    pub fn read(
        &mut self,
        ids: &[u32],
        piece: Range<usize>,
        evaluated: Range<usize>,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        let batch = self.batch(ids, piece, |position| evaluated.contains(&position));
        self.context.run(&batch, OutputKind::Logits, progress)
    }

    /// Runs the next batch of a chunk with an observer. Returns the output of all positions.
    pub fn observe(
        &mut self,
        ids: &[u32],
        piece: Range<usize>,
        kind: OutputKind,
        observer: &dyn Observer,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        let batch = self.batch(ids, piece, |_| true);
        self.context.observe(&batch, kind, observer, progress)
    }

    /// Returns the error for NaN or infinite logits at a position of a chunk. Runs the chunk again to find the origin.
    pub fn nan_error(
        &mut self,
        chunks: &Chunks,
        chunk: usize,
        position: usize,
        progress: &dyn Progress,
    ) -> Error {
        // Later tokens of the batch may be the cause.
        let ids = &chunks.inputs(chunk)[..chunks.positions().end];
        let what = format!("logits are NaN or infinite in chunk {}, token {position}", chunk + 1);
        match self.nan_origin(ids, OutputKind::Logits, progress) {
            Ok(Some(found)) => {
                let tensor = found.tensor.as_deref().unwrap_or("output");
                Error::weights(tensor, format!("{what}; it begins {}", found.what))
            }
            Ok(None) => Error::weights("output", what),
            Err(error) => error,
        }
    }

    /// Returns the operation that first computes NaN or infinity for these tokens.
    pub fn nan_origin(
        &mut self,
        ids: &[u32],
        kind: OutputKind,
        progress: &dyn Progress,
    ) -> Result<Option<NanOrigin>, Error> {
        for start in (0..ids.len()).step_by(NAN_BATCH) {
            let tracker = NanTracker::new(start);
            let piece = start..ids.len().min(start + NAN_BATCH);
            self.observe(ids, piece, kind, &tracker, progress)?;
            if let Some(found) = tracker.found() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn batch(&mut self, ids: &[u32], piece: Range<usize>, output: impl Fn(usize) -> bool) -> Batch {
        if piece.start == 0 {
            self.context.clear(0);
        }
        let token = |at| Token { id: ids[at], sequence: 0, output: output(at) };
        Batch { tokens: piece.map(token).collect() }
    }
}
