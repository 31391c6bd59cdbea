//! A model that reads windows.

use std::ops::Range;
use std::sync::Arc;

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Observer, Token, Value};
use gguf_store::Progress;

use crate::Windows;
use crate::origin::{Found, Origin};

/// How models are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// How caches store keys and values.
    pub cache_type: CacheType,
    /// Tokens that are computed together at most. Nothing that comes out depends on it.
    pub batch: usize,
}

impl Default for RunOptions {
    /// Caches of F32, so that nothing is rounded but weights; 512 tokens.
    fn default() -> Self {
        Self { cache_type: CacheType::F32, batch: 512 }
    }
}

/// Tokens that are read at a time where NaN is looked for.
const ORIGIN: usize = 32;

/// Bytes of logits that are kept at a time, about.
const LOGITS: usize = 128 << 20;

/// Cuts windows into pieces that are computed together.
pub(crate) fn pieces(
    windows: &Windows,
    executors: &[Arc<Executor>],
    options: RunOptions,
) -> Vec<Range<usize>> {
    // The last token of a window is only predicted.
    cut(windows.places().end, executors, options)
}

/// Cuts so many tokens into pieces, of which the logits of all models together fit into memory.
pub(crate) fn cut(
    tokens: usize,
    executors: &[Arc<Executor>],
    options: RunOptions,
) -> Vec<Range<usize>> {
    let row = |executor: &Arc<Executor>| 4 * executor.width(OutputKind::Logits).unwrap_or(1);
    let rows: usize = executors.iter().map(row).sum();
    let len = options.batch.min(LOGITS / rows.max(1)).max(32);
    (0..tokens).step_by(len).map(|start| start..tokens.min(start + len)).collect()
}

pub(crate) struct Predictor {
    context: Context,
}

impl Predictor {
    pub fn new(
        executor: &Arc<Executor>,
        windows: &Windows,
        options: RunOptions,
    ) -> Result<Self, Error> {
        if executor.graph().encoder().is_some() {
            let what = "a model with an encoder of its own does not read a text alone";
            let help = "take a model without one; of one that hears `gguf imatrix MODEL -f RECORDING --moments` \
                        shows what enters its matrices";
            return Err(Error::request("encoder-needed", what, help));
        }
        let context = ContextOptions {
            tokens: windows.window_len(),
            batch: options.batch,
            cache_type: options.cache_type,
            ..Default::default()
        };
        Ok(Self { context: Context::new(executor.clone(), context)? })
    }

    /// Reads a piece of a window, the pieces before which have been read: a row of logits for each of
    /// its places whose prediction counts.
    pub fn read(
        &mut self,
        ids: &[u32],
        piece: Range<usize>,
        wanted: Range<usize>,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        let batch = self.batch(ids, piece, |place| wanted.contains(&place));
        self.context.run(&batch, OutputKind::Logits, progress)
    }

    /// Reads a piece of a window while somebody looks on.
    pub fn observe(
        &mut self,
        ids: &[u32],
        piece: Range<usize>,
        kind: OutputKind,
        observer: &dyn Observer,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let batch = self.batch(ids, piece, |_| true);
        self.context.observe(&batch, kind, observer, progress)?;
        Ok(())
    }

    /// That a model computes something that is no number at a place of a window. The window is read once
    /// more, to say where that begins.
    pub fn not_a_number(
        &mut self,
        windows: &Windows,
        window: usize,
        place: usize,
        progress: &dyn Progress,
    ) -> Error {
        // Later tokens of the batch may have been in it, too.
        let ids = &windows.inputs(window)[..windows.places().end];
        let what = format!("NaN or infinity comes out of window {}, token {place}", window + 1);
        match self.origin(ids, OutputKind::Logits, progress) {
            Ok(Some(found)) => {
                let tensor = found.tensor.as_deref().unwrap_or("output");
                Error::weights(tensor, format!("{what}; it begins {}", found.what))
            }
            Ok(None) => Error::weights("output", what),
            Err(error) => error,
        }
    }

    /// Where something that is no number begins, while these tokens are read.
    pub fn origin(
        &mut self,
        ids: &[u32],
        kind: OutputKind,
        progress: &dyn Progress,
    ) -> Result<Option<Found>, Error> {
        for start in (0..ids.len()).step_by(ORIGIN) {
            let origin = Origin::new(start);
            let piece = start..ids.len().min(start + ORIGIN);
            self.observe(ids, piece, kind, &origin, progress)?;
            if let Some(found) = origin.found() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn batch(&mut self, ids: &[u32], piece: Range<usize>, wanted: impl Fn(usize) -> bool) -> Batch {
        if piece.start == 0 {
            self.context.clear(0);
        }
        let token = |place| Token { id: ids[place], sequence: 0, output: wanted(place) };
        Batch { tokens: piece.map(token).collect() }
    }
}
