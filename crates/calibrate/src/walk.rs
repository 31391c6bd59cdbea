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
#[derive(Default)]
pub(crate) struct Seen {
    /// Of each matrix of its tensors.
    pub moments: Vec<Moments>,
    /// Sums of `r[i] y[j]`: what is missing from the values that the product is added to, and what is multiplied;
    /// may be empty.
    pub missing: Vec<f32>,
}

impl Seen {
    /// Adds a window of a value that is cut into parts, each for a matrix of its own.
    fn add(
        &mut self,
        (x, parts, with_drift): (ValueId, usize, bool),
        original: &Between,
        quantized: &Between,
    ) {
        let Some(y) = quantized.get(&x) else { return };
        if self.moments.is_empty() {
            self.moments = vec![Moments::new(y.width / parts.max(1), with_drift); parts];
        }
        for (part, moments) in self.moments.iter_mut().enumerate() {
            let x = original.get(&x).map(|x| part_of(x, part, moments.n));
            moments.add(&part_of(y, part, moments.n), x.as_deref());
        }
    }

    /// Adds what is missing in a window from the value that the product with `x` is added to.
    fn add_missing(
        &mut self,
        (x, added_to): (ValueId, ValueId),
        original: &Between,
        quantized: &Between,
    ) {
        let values = (quantized.get(&x), original.get(&added_to), quantized.get(&added_to));
        let (Some(y), Some(wanted), Some(there)) = values else { return };
        let apart: Vec<f32> =
            wanted.data.iter().zip(&there.data).map(|(wanted, there)| wanted - there).collect();
        self.missing.resize(wanted.width * y.width, 0.0);
        add_cross((&apart, wanted.width), &y.data, y.width, &mut self.missing);
    }
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

    /// Computes what is before an operation. `each` gets what later ones read of that, window by window: what the
    /// original has made if it reads the window, and what the quantized model has.
    fn go_to(
        &mut self,
        quantized: &Arc<Executor>,
        op: usize,
        each: &mut dyn FnMut(&Between, &Between),
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let nothing = Between::new();
        if op == self.at {
            let mut kept = self.kept.read()?;
            for number in 0..self.batches.len() {
                let original = if number < self.compared { kept.next()? } else { Between::new() };
                each(&original, &kept.next()?);
            }
            return Ok(());
        }
        let ops: Range<usize> = self.at..op;
        let mut original = self.context(&self.original)?;
        let mut quantized = self.context(quantized)?;
        let mut kept = Kept::new(&self.directory)?;
        let mut before = self.kept.read()?;
        for (number, batch) in self.batches.iter().enumerate() {
            let mut advance = |model: &mut Context| -> Result<Between, Error> {
                let (ops, before) = (ops.clone(), before.next()?);
                let after = model.run_between(batch, ops, before, self.kind, None, progress)?;
                kept.write(&after)?;
                Ok(after)
            };
            let is_compared = number < self.compared;
            let wanted = is_compared.then(|| advance(&mut original)).transpose()?;
            each(wanted.as_ref().unwrap_or(&nothing), &advance(&mut quantized)?);
        }
        (self.kept, self.at) = (kept, op);
        Ok(())
    }

    /// Goes to a stage, and says what enters it.
    ///
    /// # Errors
    /// `weights-unusable` if a sum is no number; as [`Context::run`].
    pub fn see(
        &mut self,
        stage: &Stage,
        quantized: &Arc<Executor>,
        progress: &dyn Progress,
    ) -> Result<Seen, Error> {
        let mut seen = Seen::default();
        match stage.entering {
            Entering::Value { x, parts, added_to } => {
                let with_drift = self.compared > 0;
                let mut each = |original: &Between, quantized: &Between| {
                    seen.add((x, parts, with_drift), original, quantized);
                    if let Some(value) = added_to {
                        seen.add_missing((x, value), original, quantized);
                    }
                };
                self.go_to(quantized, stage.op, &mut each, progress)?;
            }
            Entering::Routed => {
                if self.at != stage.op {
                    self.go_to(quantized, stage.op, &mut |_, _| (), progress)?;
                }
                seen.moments = self.see_routed(stage, quantized, progress)?;
            }
        }
        for moments in &mut seen.moments {
            moments.complete();
            moments.require_numbers(&stage.tensors[0])?;
        }
        Ok(seen)
    }

    /// The quantized model alone: the original may give a token to other matrices.
    fn see_routed(
        &mut self,
        stage: &Stage,
        quantized: &Arc<Executor>,
        progress: &dyn Progress,
    ) -> Result<Vec<Moments>, Error> {
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
        Ok(moments)
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
