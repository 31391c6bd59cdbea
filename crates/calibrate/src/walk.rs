//! Two models on their way through a text: the original, and what becomes of it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gguf::Error;
use gguf_graph::{OutputKind, ValueId};
use gguf_runtime::{Batch, Between, CacheType, Context, ContextOptions, Executor, Observer, Value};
use gguf_store::Progress;

use crate::kept::Kept;
use crate::moments::{Moments, add_cross};
use crate::stage::{Entering, Stage};

/// What is known of what enters a stage.
pub(crate) struct Seen {
    /// Of each matrix of its tensors.
    pub moments: Vec<Moments>,
    /// Sums of `r[i] y[j]`: what is missing from the values that the product is added to, and what is multiplied;
    /// may be empty.
    pub missing: Vec<f32>,
}

/// Where both models stand.
pub(crate) struct Walk {
    directory: PathBuf,
    kind: OutputKind,
    /// The operation before which they stand.
    at: usize,
    batches: Vec<Batch>,
    /// How many windows the original reads, too.
    compared: usize,
    original: Arc<Executor>,
    /// Of each window what the quantized model has computed, after what the original has if it reads that.
    kept: Kept,
}

impl Walk {
    /// At the beginning of windows of token ids, of which the original reads the first with so many tokens;
    /// `directory` is where values are kept.
    pub fn new(
        original: &Arc<Executor>,
        windows: &[Vec<u32>],
        compared: usize,
        directory: &Path,
    ) -> Result<Self, Error> {
        let mut tokens = 0;
        let is_compared = |ids: &&Vec<u32>| {
            tokens += ids.len();
            tokens <= compared
        };
        let compared = windows.iter().take_while(is_compared).count();
        let mut kept = Kept::new(directory)?;
        for _ in 0..windows.len() + compared {
            kept.write(&Between::new())?;
        }
        Ok(Self {
            directory: directory.to_owned(),
            kind: last_kind(original),
            at: 0,
            batches: windows.iter().map(|ids| Batch::of_all(ids)).collect(),
            compared,
            original: original.clone(),
            kept,
        })
    }

    /// Sequences for one window.
    fn context(&self, model: &Arc<Executor>) -> Result<Context, Error> {
        let tokens = self.batches.iter().map(|batch| batch.tokens.len()).max().unwrap_or(0);
        let options = ContextOptions {
            tokens,
            batch: tokens,
            cache_type: CacheType::F32,
            ..ContextOptions::default()
        };
        Context::new(model.clone(), options)
    }

    /// Computes what is before an operation.
    pub fn go_to(
        &mut self,
        quantized: &Arc<Executor>,
        op: usize,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        if op == self.at {
            return Ok(());
        }
        let ops: Range<usize> = self.at..op;
        let mut original = self.context(&self.original)?;
        let mut quantized = self.context(quantized)?;
        let mut kept = Kept::new(&self.directory)?;
        let mut before = self.kept.read()?;
        for (number, batch) in self.batches.iter().enumerate() {
            let original = (number < self.compared).then_some(&mut original);
            for model in original.into_iter().chain([&mut quantized]) {
                let (ops, before) = (ops.clone(), before.next()?);
                kept.write(&model.run_between(batch, ops, before, self.kind, None, progress)?)?;
            }
        }
        (self.kept, self.at) = (kept, op);
        Ok(())
    }

    /// What enters a stage, before which both models stand.
    ///
    /// # Errors
    /// `weights-unusable` if a sum is no number; as [`Context::run`].
    pub fn see(
        &mut self,
        stage: &Stage,
        quantized: &Arc<Executor>,
        progress: &dyn Progress,
    ) -> Result<Seen, Error> {
        let mut seen = match stage.entering {
            Entering::Value { x, parts, added_to } => self.see_value(x, parts, added_to)?,
            Entering::Routed => self.see_routed(stage, quantized, progress)?,
        };
        for moments in &mut seen.moments {
            moments.complete();
            if let Some(column) = moments.fault() {
                let what =
                    format!("what is multiplied with column {column} is no number, or too large");
                return Err(Error::weights(&stage.tensors[0], what));
            }
        }
        Ok(seen)
    }

    fn see_value(
        &mut self,
        x: ValueId,
        parts: usize,
        added_to: Option<ValueId>,
    ) -> Result<Seen, Error> {
        let mut seen = Seen { moments: Vec::new(), missing: Vec::new() };
        let mut kept = self.kept.read()?;
        for number in 0..self.batches.len() {
            let original = if number < self.compared { kept.next()? } else { Between::new() };
            let quantized = kept.next()?;
            let Some(y) = quantized.get(&x) else { continue };
            if seen.moments.is_empty() {
                let moments = Moments::new(y.width / parts.max(1), self.compared > 0);
                seen.moments = vec![moments; parts];
            }
            for (part, moments) in seen.moments.iter_mut().enumerate() {
                let x = original.get(&x).map(|x| part_of(x, part, moments.n));
                moments.add(&part_of(y, part, moments.n), x.as_deref());
            }
            let Some(value) = added_to else { continue };
            let (Some(wanted), Some(there)) = (original.get(&value), quantized.get(&value)) else {
                continue;
            };
            let apart: Vec<f32> =
                wanted.data.iter().zip(&there.data).map(|(wanted, there)| wanted - there).collect();
            seen.missing.resize(wanted.width * y.width, 0.0);
            add_cross((&apart, wanted.width), &y.data, y.width, &mut seen.missing);
        }
        Ok(seen)
    }

    /// The quantized model alone: the original may give a token to other matrices.
    fn see_routed(
        &mut self,
        stage: &Stage,
        quantized: &Arc<Executor>,
        progress: &dyn Progress,
    ) -> Result<Seen, Error> {
        let mut moments: Vec<Moments> = Vec::new();
        let mut model = self.context(quantized)?;
        let mut before = self.kept.read()?;
        for (number, batch) in self.batches.iter().enumerate() {
            if number < self.compared {
                before.next()?;
            }
            let routed = Routed { tensor: &stage.tensors[0], rows: Mutex::default() };
            let (ops, before) = (stage.op..stage.op + 1, before.next()?);
            model.run_between(batch, ops, before, self.kind, Some(&routed), progress)?;
            let mut rows = routed.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
            rows.sort_by_key(|(matrix, ..)| *matrix);
            for (matrix, count, x) in rows {
                if moments.is_empty() {
                    moments = vec![Moments::new(x.width, false); count];
                }
                if let Some(moments) = moments.get_mut(matrix) {
                    moments.add(&x.data, None);
                }
            }
        }
        Ok(Seen { moments, missing: Vec::new() })
    }
}

/// Some columns of all rows.
fn part_of(value: &Value, part: usize, n: usize) -> std::borrow::Cow<'_, [f32]> {
    if n == value.width {
        return (&value.data[..]).into();
    }
    let rows = value.data.chunks_exact(value.width.max(1));
    rows.flat_map(|row| &row[part * n..][..n]).copied().collect()
}

/// Rows that are multiplied with matrices of a tensor: number of the matrix, how many there are, and the rows.
struct Routed<'r> {
    tensor: &'r str,
    rows: Mutex<Vec<(usize, usize, Value)>>,
}

impl Observer for Routed<'_> {
    fn product(&self, tensor: &str, expert: Option<(usize, usize)>, x: &Value) {
        if tensor == self.tensor {
            let (matrix, count) = expert.unwrap_or((0, 1));
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.push((matrix, count, x.clone()));
        }
    }
}

/// What a model computes at its very end.
fn last_kind(executor: &Executor) -> OutputKind {
    let kinds = [OutputKind::Logits, OutputKind::Pooled, OutputKind::Classes, OutputKind::Hidden];
    let known = kinds.into_iter().filter_map(|kind| Some((executor.graph().output(kind)?.0, kind)));
    known.max_by_key(|(value, _)| *value).map_or(OutputKind::Hidden, |(_, kind)| kind)
}
