//! Parallel run of two models over the calibration text: the original and the partly quantized one.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::ScopedJoinHandle;

use gguf::Error;
use gguf_graph::{Matmul, Op, OutputKind, ValueId};
use gguf_runtime::{
    Batch, CacheType, Context, ContextOptions, Executor, LiveValues, Observer, Value,
};
use gguf_store::Progress;

use crate::activation_file::{ActivationFile, SpareMemory};
use crate::hessian::{Hessian, add_cross};
use crate::stage::{Stage, StageInput, only_multiplied};
use crate::token_weights;

/// Number of tokens of the chunks that are computed together: fewer would decode weights, and read and
/// write the sums, more often.
const TOGETHER: usize = 1024;

/// Statistics of the input of a stage.
#[derive(Default)]
pub(crate) struct StageStatistics {
    /// Hessian of each matrix.
    pub hessians: Vec<Hessian>,
    /// See [`Correction::new`](crate::Correction::new); may be empty.
    pub output_error: Vec<f32>,
}

impl StageStatistics {
    /// Adds some tokens of the inputs in both models; the rows are split into parts, one per matrix.
    fn add(&mut self, original: Option<&Value>, quantized: &Value, parts: usize, with_drift: bool) {
        if self.hessians.is_empty() {
            self.hessians = vec![Hessian::new(quantized.width / parts.max(1), with_drift); parts];
        }
        for (part, hessian) in self.hessians.iter_mut().enumerate() {
            let x = original.map(|x| column_slice(x, part, hessian.n));
            hessian.add(&column_slice(quantized, part, hessian.n), x.as_deref());
        }
    }

    /// Adds some tokens of the error of the output.
    fn add_output_error(&mut self, input: &Value, error: &Value) {
        self.output_error.resize(error.width * input.width, 0.0);
        add_cross((&error.data, error.width), &input.data, input.width, &mut self.output_error);
        self.hessians.iter_mut().for_each(|hessian| hessian.compared += error.rows as u64);
    }
}

/// Position of both models.
pub(crate) struct PairedRun {
    directory: PathBuf,
    kind: OutputKind,
    /// Index of the next operation.
    at: usize,
    /// Chunks that are computed together, as sequences.
    batches: Vec<Batch>,
    options: ContextOptions,
    /// Number of batches that the original model also reads.
    compared: usize,
    original: Arc<Executor>,
    /// The original model at the beginning: up to the first quantized matrix, both models compute the same.
    unchanged: Arc<Executor>,
    /// Values that only matrix multiplications read, for which BF16 is precise enough.
    halves: Arc<HashSet<ValueId>>,
    /// Activations of each batch: those of the original model, if it reads the batch, then those of
    /// the quantized model.
    activations: ActivationFile,
}

impl PairedRun {
    /// Starts at the beginning of chunks of token ids. The original model reads the first chunks,
    /// about `compared` tokens. Activations are stored in `directory`.
    pub fn new(
        original: &Arc<Executor>,
        chunks: &[Vec<u32>],
        compared: usize,
        directory: &Path,
    ) -> Result<Self, Error> {
        let longest = chunks.iter().map(Vec::len).max().unwrap_or(0);
        let sequences = (TOGETHER / longest.max(1)).max(1);
        let batch = |chunks: &[Vec<u32>]| Batch {
            tokens: chunks
                .iter()
                .enumerate()
                .flat_map(|(sequence, ids)| Batch::for_sequence(ids, sequence).tokens)
                .collect(),
        };
        let batches: Vec<Batch> = chunks.chunks(sequences).map(batch).collect();
        let mut before = 0;
        let is_compared = |batch: &&Batch| {
            let is_compared = before < compared;
            before += batch.tokens.len();
            is_compared
        };
        let compared = batches.iter().take_while(is_compared).count();
        let halves = Arc::new(only_multiplied(&original.graph().raw().main));
        let mut activations = ActivationFile::new(directory, halves.clone())?;
        for _ in 0..batches.len() + compared {
            activations.write(&LiveValues::new())?;
        }
        let options = ContextOptions {
            sequences,
            tokens: longest,
            batch: sequences * longest,
            cache_type: CacheType::F32,
        };
        Ok(Self {
            directory: directory.to_owned(),
            kind: last_output(original),
            at: 0,
            batches,
            options,
            compared,
            original: original.clone(),
            unchanged: original.clone(),
            halves,
            activations,
        })
    }

    /// Replaces the original model, for example by one whose matrices are faster to multiply with.
    pub fn set_original(&mut self, original: Arc<Executor>) {
        self.original = original;
    }

    /// Creates a context for a batch.
    fn context(&self, model: &Arc<Executor>) -> Result<Context, Error> {
        Context::new(model.clone(), self.options)
    }

    /// Runs all operations before `op`. Calls `each` for every batch with it and the values that later
    /// operations read: those of the original model if it reads the batch, and those of the
    /// quantized model.
    fn advance_to(
        &mut self,
        quantized: &Arc<Executor>,
        op: usize,
        each: &mut dyn FnMut(&Batch, &LiveValues, &LiveValues) -> Result<(), Error>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let nothing = LiveValues::new();
        let spare = SpareMemory::default();
        if op == self.at {
            let mut activations = self.activations.read()?;
            for (number, batch) in self.batches.iter().enumerate() {
                let is_compared = number < self.compared;
                let original = is_compared.then(|| activations.next(&spare)).transpose()?;
                let quantized = activations.next(&spare)?;
                each(batch, original.as_ref().unwrap_or(&nothing), &quantized)?;
                original
                    .into_iter()
                    .chain([quantized])
                    .for_each(|values| spare.give(values.into_values()));
            }
            return Ok(());
        }
        let ops: Range<usize> = self.at..op;
        let is_same = self.at == 0 && Arc::ptr_eq(quantized, &self.unchanged);
        let mut original = self.context(&self.original)?;
        let mut quantized = self.context(quantized)?;
        let mut activations = ActivationFile::new(&self.directory, self.halves.clone())?;
        let mut before = self.activations.read()?;
        let kind = self.kind;
        let count = self.batches.len() + self.compared;
        // Files are read and written while the models compute.
        let spare = &spare;
        std::thread::scope(|scope| {
            let (sender, inputs) = mpsc::sync_channel(1);
            let reader = scope.spawn(move || {
                for _ in 0..count {
                    let values = before.next(spare);
                    let is_last = values.is_err();
                    if sender.send(values).is_err() || is_last {
                        break;
                    }
                }
            });
            let (outputs, receiver) = mpsc::sync_channel::<LiveValues>(1);
            let activations = &mut activations;
            let writer = scope.spawn(move || {
                receiver.iter().try_for_each(|values| {
                    activations.write(&values).map(|()| spare.give(values.into_values()))
                })
            });
            let mut compute = || {
                let read = || inputs.recv().unwrap_or_else(|_| Ok(LiveValues::new()));
                for (number, batch) in self.batches.iter().enumerate() {
                    let advance = |model: &mut Context| -> Result<LiveValues, Error> {
                        model.run_range(batch, ops.clone(), read()?, kind, None, progress)
                    };
                    let is_compared = number < self.compared;
                    let desired = is_compared.then(|| advance(&mut original)).transpose()?;
                    let actual = match &desired {
                        Some(desired) if is_same => read().map(|_| desired.clone())?,
                        _ => advance(&mut quantized)?,
                    };
                    each(batch, desired.as_ref().unwrap_or(&nothing), &actual)?;
                    for values in desired.into_iter().chain([actual]) {
                        if outputs.send(values).is_err() {
                            // The writer has failed, and says why.
                            return Ok(());
                        }
                    }
                }
                Ok(())
            };
            let computed = compute();
            drop((inputs, outputs));
            join(reader);
            join(writer).and(computed)
        })?;
        (self.activations, self.at) = (activations, op);
        Ok(())
    }

    /// Advances to a stage without collecting anything.
    ///
    /// # Errors
    /// As [`Context::run`].
    pub fn skip_stage(
        &mut self,
        stage: &Stage,
        quantized: &Arc<Executor>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        if self.at == stage.op {
            return Ok(());
        }
        self.advance_to(quantized, stage.op, &mut |_, _, _| Ok(()), progress)
    }

    /// Advances to a stage and collects the statistics of its input.
    ///
    /// # Errors
    /// Returns `weights-unusable` if a sum is not finite, and the errors of [`Context::run`].
    pub fn collect_stage(
        &mut self,
        stage: &Stage,
        quantized: &Arc<Executor>,
        progress: &dyn Progress,
    ) -> Result<StageStatistics, Error> {
        let mut seen = StageStatistics::default();
        let spare = SpareMemory::default();
        match stage.input {
            StageInput::Value { x, parts, added_to } => {
                let with_drift = self.compared > 0 && added_to.is_none();
                let mut added_to = added_to
                    .map(|stream| Product::new(self, stage.op).map(|matrix| (stream, matrix)))
                    .transpose()?;
                let mut each = |batch: &Batch, original: &LiveValues, quantized: &LiveValues| {
                    let Some(input) = quantized.get(&x) else { return Ok(()) };
                    let stream = added_to.as_mut().and_then(|(stream, matrix)| {
                        Some((&*stream, matrix, quantized.get(stream)?))
                    });
                    let Some((stream, matrix, actual)) = stream else {
                        seen.add(original.get(&x), input, parts, with_drift);
                        return Ok(());
                    };
                    let roots = token_weights::roots(input, actual);
                    let weighted = spare.value(input, |row, out| {
                        out.iter_mut()
                            .zip(input.row(row))
                            .for_each(|(out, x)| *out = x * roots[row]);
                    });
                    seen.add(None, &weighted, parts, with_drift);
                    let desired = (original.get(&x), original.get(stream));
                    if let (Some(desired_input), Some(desired)) = desired {
                        let drift = spare.value(input, |row, out| {
                            subtract(desired_input.row(row), input.row(row), out);
                        });
                        let of_input = matrix.times(batch, x, drift, progress)?;
                        let error = spare.value(actual, |row, out| {
                            subtract(desired.row(row), actual.row(row), out);
                            out.iter_mut().zip(of_input.row(row)).for_each(|(e, of_input)| {
                                *e = (*e + of_input) * roots[row];
                            });
                        });
                        seen.add_output_error(&weighted, &error);
                        spare.give([of_input, error]);
                    }
                    spare.give([weighted]);
                    Ok(())
                };
                self.advance_to(quantized, stage.op, &mut each, progress)?;
            }
            StageInput::Routed => {
                self.skip_stage(stage, quantized, progress)?;
                seen.hessians = self.collect_routed(stage, quantized, progress)?;
            }
        }
        for hessian in &mut seen.hessians {
            hessian.symmetrize();
            hessian.require_finite(&stage.tensors[0])?;
        }
        Ok(seen)
    }

    /// Collects from the quantized model only: the original may route a token to other experts.
    fn collect_routed(
        &mut self,
        stage: &Stage,
        quantized: &Arc<Executor>,
        progress: &dyn Progress,
    ) -> Result<Vec<Hessian>, Error> {
        let mut hessians: Vec<Hessian> = Vec::new();
        let mut model = self.context(quantized)?;
        let mut before = self.activations.read()?;
        let spare = SpareMemory::default();
        for (number, batch) in self.batches.iter().enumerate() {
            if number < self.compared {
                spare.give(before.next(&spare)?.into_values());
            }
            let routed = Routed { tensor: &stage.tensors[0], rows: Mutex::default() };
            let (ops, before) = (stage.op..stage.op + 1, before.next(&spare)?);
            model.run_range(batch, ops, before, self.kind, Some(&routed), progress)?;
            let mut rows = routed.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
            rows.sort_by_key(|(matrix, ..)| *matrix);
            for (matrix, count, x) in rows {
                if hessians.is_empty() {
                    hessians = vec![Hessian::new(x.width, false); count];
                }
                if let Some(hessian) = hessians.get_mut(matrix) {
                    hessian.add(&x.data, None);
                }
            }
        }
        Ok(hessians)
    }
}

/// Waits for a thread.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Computes `a - b`.
fn subtract(a: &[f32], b: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(a).zip(b).for_each(|((out, a), b)| *out = a - b);
}

/// A matrix of the original model.
struct Product {
    context: Context,
    kind: OutputKind,
    /// Index of the operation that multiplies with it.
    op: usize,
}

impl Product {
    fn new(run: &PairedRun, op: usize) -> Result<Self, Error> {
        Ok(Self { context: run.context(&run.original)?, kind: run.kind, op })
    }

    /// Multiplies a value, which takes the place of `x`, with the matrix, and adds no bias.
    fn times(
        &mut self,
        batch: &Batch,
        x: ValueId,
        value: Value,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        let Self { kind, op, .. } = *self;
        let executor = self.context.executor().clone();
        let mut output = |value: Value| -> Result<Value, Error> {
            let before = LiveValues::from([(x, value)]);
            let mut values =
                self.context.run_range(batch, op..op + 1, before, kind, None, progress)?;
            Ok(values.remove(&ValueId(op as u32)).unwrap_or_default())
        };
        match executor.graph().raw().main.ops[op] {
            Op::Matmul(Matmul { bias: Some(_), .. }) => {
                let zeros = Value { data: vec![0.0; value.data.len()], ..value };
                let (mut product, bias) = (output(value)?, output(zeros)?);
                product
                    .data
                    .iter_mut()
                    .zip(&bias.data)
                    .for_each(|(product, bias)| *product -= bias);
                Ok(product)
            }
            _ => output(value),
        }
    }
}

/// Returns some columns of all rows.
fn column_slice(value: &Value, part: usize, n: usize) -> std::borrow::Cow<'_, [f32]> {
    if n == value.width {
        return (&value.data[..]).into();
    }
    let rows = value.data.chunks_exact(value.width.max(1));
    rows.flat_map(|row| &row[part * n..][..n]).copied().collect()
}

/// Observer that records the rows routed to each matrix of a tensor: matrix index, number of
/// matrices, and the rows.
struct Routed<'r> {
    tensor: &'r str,
    rows: Mutex<Vec<(usize, usize, Value)>>,
}

impl Observer for Routed<'_> {
    fn matmul(&self, tensor: &str, expert: Option<(usize, usize)>, x: &Value) {
        if tensor == self.tensor {
            let (matrix, count) = expert.unwrap_or((0, 1));
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.push((matrix, count, x.clone()));
        }
    }
}

/// Returns the last output that the model computes.
fn last_output(executor: &Executor) -> OutputKind {
    let kinds = [OutputKind::Logits, OutputKind::Pooled, OutputKind::Classes, OutputKind::Hidden];
    let known = kinds.into_iter().filter_map(|kind| Some((executor.graph().output(kind)?.0, kind)));
    known.max_by_key(|(value, _)| *value).map_or(OutputKind::Hidden, |(_, kind)| kind)
}
