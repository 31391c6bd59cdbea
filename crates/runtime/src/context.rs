//! Contexts: the states of sequences of tokens.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use gguf::{Error, Finding};
use gguf_graph::{OutputKind, RowDim};
use gguf_store::Progress;

use crate::batch::Batch;
use crate::executor::Executor;
use crate::interpreter::{Interpreter, LiveValues, MemoryPool};
use crate::liveness::{last_uses, needs_whole_batch};
use crate::memory::peak;
use crate::memory_budget::{Reservation, out_of_memory};
use crate::observer::Observer;
use crate::op::kernel;
use crate::options::ContextOptions;
use crate::run::{Inputs, Run};
use crate::sequence::{Checkpoint, Sequence, encoder_size};
use crate::value::Value;
use crate::watch::Watch;

/// A model with the states of some sequences.
pub struct Context {
    executor: Arc<Executor>,
    options: ContextOptions,
    sequences: Vec<Sequence>,
    /// Memory of the values of the last run, for the next one.
    pool: MemoryPool,
    /// Memory of the values in the budget.
    values: Reservation,
    /// Memory of the states of the encoder in the budget.
    encoder_states: Reservation,
    /// Memory of all other states in the budget.
    _states: Reservation,
}

impl Context {
    /// Returns a context with empty sequences.
    ///
    /// # Errors
    /// `memory-budget` if full caches would exceed the memory budget of the executor; nothing is allocated then.
    pub fn new(executor: Arc<Executor>, options: ContextOptions) -> Result<Self, Error> {
        let memory = executor.memory();
        let what = || {
            let ContextOptions { sequences, tokens, .. } = options;
            format!("caches and states of {sequences} sequences of {tokens} tokens")
        };
        let states = memory.reserve(options.byte_len(executor.graph()), what, SMALLER_CONTEXT)?;
        let values = memory.reserve(0, String::new, "")?;
        let encoder_states = memory.reserve(0, String::new, "")?;
        let sequence = |_| Sequence::new(executor.graph(), options);
        let sequences = (0..options.sequences).map(sequence).collect::<Result<_, _>>()?;
        let pool = MemoryPool::default();
        Ok(Self { executor, options, sequences, pool, values, encoder_states, _states: states })
    }

    /// Returns the model.
    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    /// Returns the number of tokens of a sequence; 0 if there is no such sequence.
    pub fn len(&self, sequence: usize) -> usize {
        self.sequences.get(sequence).map_or(0, |sequence| sequence.len)
    }

    /// Returns the number of tokens that still fit into a sequence.
    pub fn room(&self, sequence: usize) -> usize {
        self.options.tokens.saturating_sub(self.len(sequence))
    }

    /// Returns the maximum number of tokens that are computed together.
    pub fn batch_size(&self) -> usize {
        self.options.batch
    }

    /// Whether all sequences are empty.
    pub fn is_empty(&self) -> bool {
        self.sequences.iter().all(|sequence| sequence.len == 0)
    }

    pub(crate) fn sequence(&self, number: usize) -> Option<&Sequence> {
        self.sequences.get(number)
    }

    pub(crate) fn sequence_mut(&mut self, number: usize) -> Option<&mut Sequence> {
        self.sequences.get_mut(number)
    }

    /// Removes all tokens of a sequence. Its memory stays allocated.
    pub fn clear(&mut self, sequence: usize) {
        if let Some(sequence) = self.sequences.get_mut(sequence) {
            sequence.clear(self.executor.graph());
        }
    }

    /// Copies a sequence to others, so that a common prefix is computed once. Copies share the output of the encoder. Numbers
    /// without a sequence are ignored.
    pub fn copy(&mut self, from: usize, to: Range<usize>) {
        for number in to {
            if let Ok([sequence, copy]) = self.sequences.get_disjoint_mut([from, number]) {
                copy.copy_from(sequence);
            }
        }
    }

    /// Removes the tokens of a sequence from position `len` on. Models with recurrent or convolution states cannot do
    /// this: nothing changes, and the result is `false`. Layers with a sliding window keep little more than the window: with
    /// them, at least the last 256 tokens before the last batch can be removed, or all.
    pub fn truncate(&mut self, sequence: usize, len: usize) -> bool {
        let Some(sequence) = self.sequences.get_mut(sequence) else { return false };
        if len < sequence.len && !sequence.truncate(len) {
            return false;
        }
        true
    }

    /// Returns a checkpoint of a sequence, to which [`Context::rewind`] returns: recurrent and convolution states are copied,
    /// keys and values are not. `None` if there is no such sequence.
    pub fn checkpoint(&self, sequence: usize) -> Option<Checkpoint> {
        self.sequences.get(sequence).map(Sequence::checkpoint)
    }

    /// Removes the tokens of a sequence after its checkpoint. Returns false, and does nothing, if the sequence is shorter, or
    /// has so many more tokens that layers with a sliding window do not have the window before the checkpoint
    /// ([`Context::truncate`]).
    pub fn rewind(&mut self, sequence: usize, checkpoint: &Checkpoint) -> bool {
        self.sequences.get_mut(sequence).is_some_and(|sequence| sequence.rewind(checkpoint))
    }

    /// Whether [`Context::truncate`] can remove tokens of the model.
    pub fn can_truncate(&self) -> bool {
        self.executor.can_truncate()
    }

    /// Runs a batch. Returns a row for each token whose output is requested, or, for pooled outputs, for each sequence
    /// of the batch in the order of their first tokens.
    ///
    /// Sequences of a model without states, such as a text encoder, stay empty: its runs are independent.
    ///
    /// # Errors
    /// `token-out-of-range`, `context-full`, `result-missing` if the model does not compute that kind,
    /// [`Error::Interrupted`]. After an error, clear the sequences of the batch.
    pub fn run(
        &mut self,
        batch: &Batch,
        kind: OutputKind,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        // The run starts within the thread pool; otherwise every operation would have to enter it.
        rayon::scope(|_| self.run_watched(batch, kind, &Watch::new(progress)))
    }

    /// Runs a batch for several outputs. `features` has a row for each token if the model reads features of tokens, and
    /// is ignored otherwise.
    ///
    /// # Errors
    /// `features-missing` if the model reads features of another width, or for another number of tokens; else as
    /// [`Context::run`].
    pub fn run_kinds(
        &mut self,
        batch: &Batch,
        features: Option<&Value>,
        kinds: &[OutputKind],
        progress: &dyn Progress,
    ) -> Result<Vec<Value>, Error> {
        rayon::scope(|_| self.run_outputs(batch, features, kinds, &Watch::new(progress)))
    }

    /// Runs a batch whose output is used or written. NaN or infinity in it is an error.
    ///
    /// # Errors
    /// `weights-unusable` if the output contains NaN or infinity; else as [`Context::run`].
    pub fn run_finite(
        &mut self,
        batch: &Batch,
        kind: OutputKind,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        let output = self.run(batch, kind, progress)?;
        output.require_finite()?;
        Ok(output)
    }

    /// Runs a batch with an observer.
    ///
    /// # Errors
    /// As [`Context::run`].
    pub fn observe(
        &mut self,
        batch: &Batch,
        kind: OutputKind,
        observer: &dyn Observer,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        rayon::scope(|_| self.run_watched(batch, kind, &Watch::new(progress).observed(observer)))
    }

    /// Runs a range of operations of the main program for a batch that is not split, given the values computed before
    /// them. Returns the values that later operations read on the way to `kind`, and in the end the output itself. The
    /// sequences of the batch must be empty, and stay empty: states do not persist between ranges.
    ///
    /// # Errors
    /// `request-invalid` if the graph has no such operations; else as [`Context::run`].
    pub fn run_range(
        &mut self,
        batch: &Batch,
        ops: Range<usize>,
        before: LiveValues,
        kind: OutputKind,
        observer: Option<&dyn Observer>,
        progress: &dyn Progress,
    ) -> Result<LiveValues, Error> {
        let executor = self.executor.clone();
        let (program, shapes) = executor.graph().main();
        let Some((requested, _)) = executor.graph().output(kind) else {
            return Err(no_result(kind));
        };
        if ops.start > ops.end || ops.end > program.ops.len() {
            let what =
                format!("operations {ops:?} were requested; the graph has {}", program.ops.len());
            return Err(Error::request("request-invalid", what, "request operations of the graph"));
        }
        self.accept(batch, false)?;
        let mut watch = Watch::new(progress);
        watch.observer = observer;
        let inputs = Inputs::Tokens { tokens: &batch.tokens, features: &[] };
        let interpreter = self.interpreter(&executor, &watch);
        let main = (program, shapes);
        let between = rayon::scope(|_| {
            interpreter.run_range(main, &[requested], ops.clone(), before, inputs)
        });
        if program.ops[ops].iter().any(|op| !op.states().is_empty()) {
            batch.tokens.iter().for_each(|token| self.clear(token.sequence));
        }
        between
    }

    /// Returns an interpreter of runs for all sequences.
    fn interpreter<'r>(
        &'r mut self,
        executor: &'r Executor,
        watch: &'r Watch<'r>,
    ) -> Interpreter<'r> {
        Interpreter {
            executor,
            sequences: &mut self.sequences,
            options: &self.options,
            pool: &mut self.pool,
            values: &mut self.values,
            watch,
        }
    }

    fn run_watched(
        &mut self,
        batch: &Batch,
        kind: OutputKind,
        watch: &Watch<'_>,
    ) -> Result<Value, Error> {
        let mut outputs = self.run_outputs(batch, None, &[kind], watch)?;
        Ok(outputs.pop().unwrap_or_default())
    }

    fn run_outputs(
        &mut self,
        batch: &Batch,
        features: Option<&Value>,
        kinds: &[OutputKind],
        watch: &Watch<'_>,
    ) -> Result<Vec<Value>, Error> {
        let executor = self.executor.clone();
        let graph = executor.graph();
        let outputs = kinds.iter().map(|kind| graph.output(*kind).ok_or_else(|| no_result(*kind)));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        self.accept(batch, false)?;
        let (program, _) = graph.main();
        let features_width = program.token_features_width();
        let features = match features_width {
            None => &[],
            Some(width) => token_features(batch, features, width)?,
        };
        let values: Vec<_> = outputs.iter().map(|(value, _)| *value).collect();
        let sizes: Vec<_> = outputs
            .iter()
            .map(|(_, shape)| (output_rows(batch, shape.rows), shape.width as usize))
            .collect();
        let elements =
            sizes.iter().map(|(rows, width)| (*rows as u64).saturating_mul(*width as u64));
        let _outputs = executor.memory().reserve(
            elements.fold(0, u64::saturating_add).saturating_mul(4),
            || {
                format!(
                    "the outputs of {} tokens",
                    sizes.iter().map(|size| size.0).max().unwrap_or(0)
                )
            },
            "request fewer outputs",
        )?;
        let empty =
            |(_, width): &(usize, usize)| Value { rows: 0, width: *width, data: Vec::new() };
        let mut results: Vec<_> = sizes.iter().map(empty).collect();
        let is_whole = values.iter().any(|value| needs_whole_batch(program, *value));
        let has_states = !graph.raw().states.is_empty();
        let step = if is_whole { batch.tokens.len() } else { self.options.batch }.max(1);
        for (number, tokens) in batch.tokens.chunks(step).enumerate() {
            let row_len = features_width.unwrap_or(0);
            let features = &features[number * step * row_len..][..tokens.len() * row_len];
            let inputs = Inputs::Tokens { tokens, features };
            let parts = self.interpreter(&executor, watch).run(graph.main(), &values, inputs)?;
            if has_states {
                tokens.iter().for_each(|token| self.sequences[token.sequence].len += 1);
            }
            for ((result, part), (rows, width)) in results.iter_mut().zip(parts).zip(&sizes) {
                append(result, part, rows * width)?;
            }
        }
        Ok(results)
    }

    /// Runs the encoder on features `[frames, width]` for a sequence, whose tokens then attend to its output. Returns
    /// the output.
    ///
    /// # Errors
    /// `features-missing` if the model has no encoder of features of this width; else as
    /// [`Context::run`].
    pub fn encode(
        &mut self,
        sequence: usize,
        features: &Value,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        let watch = Watch::new(progress);
        self.run_encoder(sequence, Some(features.width), Inputs::Features(features), &watch)
    }

    /// Checks that the encoder can run on a number of frames: its tables have as many positions, and its values fit
    /// into the memory budget. Does nothing if the model has no encoder of frames.
    ///
    /// # Errors
    /// `context-full`, `memory-budget`.
    pub fn check_frames(&self, frames: usize) -> Result<(), Error> {
        let encoder = self.executor.graph().encoder();
        let of_frames = encoder.filter(|(program, _)| program.features_width().is_some());
        let Some((program, shapes)) = of_frames else { return Ok(()) };
        let features = Value { rows: frames, width: 0, data: Vec::new() };
        let watch = Watch::new(&());
        let inputs = Inputs::Features(&features);
        let run = Run::new(&self.executor, inputs, &[], 0, program.ops.len(), &watch);
        for (op, shape) in program.ops.iter().zip(shapes) {
            kernel(op).check(&run, run.rows(shape.rows))?;
        }
        let outputs: Vec<_> = program.outputs.iter().map(|output| output.value).collect();
        let values =
            peak(program, shapes, &last_uses(program, &outputs), |rows| inputs.rows(rows) as u64);
        let what = || format!("the values of {frames} frames");
        self.executor.memory().reserve(values, what, "pass fewer frames").map(drop)
    }

    /// Runs the encoder with an observer.
    ///
    /// # Errors
    /// As [`Context::encode`].
    pub fn observe_encoder(
        &mut self,
        sequence: usize,
        features: &Value,
        observer: &dyn Observer,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        let watch = Watch::new(progress).observed(observer);
        self.run_encoder(sequence, Some(features.width), Inputs::Features(features), &watch)
    }

    /// Runs an encoder of tokens for a sequence.
    ///
    /// # Errors
    /// `features-missing` if the model has no encoder of tokens; else as [`Context::run`].
    pub fn encode_tokens(
        &mut self,
        sequence: usize,
        ids: &[u32],
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        if let Some(width) =
            self.executor.graph().encoder().and_then(|(program, _)| program.token_features_width())
        {
            let what = format!("the encoder reads {width} features of each token");
            return Err(Error::request("features-missing", what, AS_DRAFT));
        }
        self.clear(sequence);
        self.accept(&Batch::for_sequence(ids, sequence), true)?;
        // The encoder runs for one sequence, which is the first one there.
        let tokens = Batch::all_outputs(ids).tokens;
        let inputs = Inputs::Tokens { tokens: &tokens, features: &[] };
        self.run_encoder(sequence, None, inputs, &Watch::new(progress))
    }

    /// Appends tokens to a sequence, given the features of each: the encoder computes their keys and values. Their ids are not
    /// needed, and nothing is predicted.
    ///
    /// # Errors
    /// `features-missing` if the model has no encoder of features of tokens of this width; else as [`Context::run`].
    pub fn append_features(
        &mut self,
        sequence: usize,
        features: &Value,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let executor = self.executor.clone();
        let encoder = executor.graph().encoder();
        let width = encoder.and_then(|(program, _)| program.token_features_width());
        let (Some(program), true) = (encoder, width == Some(features.width)) else {
            let what =
                format!("the model has no encoder of {} features of each token", features.width);
            return Err(Error::request("features-missing", what, AS_DRAFT));
        };
        let batch = Batch::for_sequence(&vec![0; features.rows], sequence);
        self.accept(&batch, true)?;
        let watch = Watch::new(progress);
        let step = self.options.batch.max(1);
        for (tokens, features) in
            batch.tokens.chunks(step).zip(features.data.chunks(step * features.width))
        {
            let inputs = Inputs::Tokens { tokens, features };
            rayon::scope(|_| self.interpreter(&executor, &watch).run(program, &[], inputs))?;
            self.sequences[sequence].len += tokens.len();
        }
        Ok(())
    }

    /// Runs the encoder on frames of a width, or on tokens.
    fn run_encoder(
        &mut self,
        sequence: usize,
        width: Option<usize>,
        inputs: Inputs<'_>,
        watch: &Watch<'_>,
    ) -> Result<Value, Error> {
        let executor = self.executor.clone();
        let Some(program) = executor.graph().encoder() else {
            let help = "run it with tokens only";
            return Err(Error::request("features-missing", "the model has no encoder", help));
        };
        let expected = program.0.features_width();
        if expected != width {
            let input = |width: Option<usize>| match width {
                Some(width) => format!("frames of {width} features"),
                None => "tokens".to_owned(),
            };
            let what =
                format!("the input is {}; the encoder expects {}", input(width), input(expected));
            let help = "pass the features that the model was trained on";
            return Err(Error::request("features-missing", what, help));
        }
        // The tokens of the sequence attended to another output of the encoder.
        if program.0.ops.iter().any(|op| !op.states().is_empty()) {
            self.clear(sequence);
        }
        let cache_type = self.options.cache_type;
        let size = encoder_size(executor.graph(), cache_type, |rows| inputs.rows(rows) as u64);
        let encoded = self.sequences.iter().enumerate();
        let encoded = encoded.map(|(number, one)| one.encoded_size(&self.sequences[..number]));
        let size = encoded.fold(size, u64::saturating_add);
        let what = || "the states of the encoder".to_owned();
        self.encoder_states.grow_to(size, what, "make its input shorter")?;
        let outputs: Vec<_> = program.0.outputs.iter().map(|output| output.value).collect();
        let Some(sequences) = self.sequences.get_mut(sequence..=sequence) else {
            return Err(no_sequence(sequence));
        };
        let interpreter = Interpreter {
            executor: &executor,
            sequences,
            options: &self.options,
            pool: &mut self.pool,
            values: &mut self.values,
            watch,
        };
        let mut values = interpreter.run(program, &outputs, inputs)?;
        Ok(values.pop().unwrap_or_default())
    }

    /// Checks a batch before anything is computed.
    fn accept(&self, batch: &Batch, for_encoder: bool) -> Result<(), Error> {
        let vocabulary = self.executor.vocabulary_len();
        let mut lens: Vec<usize> = self.sequences.iter().map(|sequence| sequence.len).collect();
        for (number, token) in batch.tokens.iter().enumerate() {
            if vocabulary.is_some_and(|len| token.id as usize >= len) {
                let len = vocabulary.unwrap_or(0);
                let what = format!("token {number} of the batch has id {}", token.id);
                let help = format!("the model has the ids 0 to {}", len.saturating_sub(1));
                return Err(Error::request("token-out-of-range", what, help));
            }
            let len = lens.get_mut(token.sequence).ok_or_else(|| no_sequence(token.sequence))?;
            if !for_encoder && self.sequences[token.sequence].lacks_encoder() {
                let what = format!("sequence {} has no output of the encoder", token.sequence);
                let help = "run the encoder first";
                return Err(Error::request("features-missing", what, help));
            }
            *len += 1;
            if *len > self.options.tokens {
                let what =
                    format!("a sequence exceeds the context of {} tokens", self.options.tokens);
                return Err(Error::request(
                    "context-full",
                    what,
                    "use a larger context or a shorter text",
                ));
            }
        }
        Ok(())
    }
}

/// How to need less memory for caches and states.
const SMALLER_CONTEXT: &str = "make the context shorter or the cache type smaller";

/// Help for a model that reads features of tokens.
const AS_DRAFT: &str = "run it as the draft of its target model";

/// Returns the features of the tokens of a batch, row by row.
fn token_features<'v>(
    batch: &Batch,
    features: Option<&'v Value>,
    width: usize,
) -> Result<&'v [f32], Error> {
    let rows = batch.tokens.len();
    match features {
        Some(features) if (features.rows, features.width) == (rows, width) => Ok(&features.data),
        _ => {
            let what = format!("the model reads {width} features of each of {rows} tokens");
            Err(Error::request("features-missing", what, AS_DRAFT))
        }
    }
}

/// Appends the output of a part of a batch to that of the parts before, which will have `len` elements in the end.
fn append(all: &mut Value, part: Value, len: usize) -> Result<(), Error> {
    if all.rows > 0 {
        all.rows += part.rows;
        all.data.extend(part.data);
        return Ok(());
    }
    *all = part;
    // Exactly the memory that was reserved: doubling would take more.
    let more = len.saturating_sub(all.data.len());
    all.data.try_reserve_exact(more).map_err(|_| out_of_memory(4 * len as u64))
}

/// Returns the number of rows of the output of a batch.
fn output_rows(batch: &Batch, rows: RowDim) -> usize {
    match rows {
        RowDim::Outputs => batch.tokens.iter().filter(|token| token.output).count(),
        RowDim::Sequences => {
            batch.tokens.iter().map(|token| token.sequence).collect::<HashSet<_>>().len()
        }
        RowDim::Tokens | RowDim::Frames { .. } => batch.tokens.len(),
    }
}

fn no_result(kind: OutputKind) -> Error {
    let what = format!("the model does not compute {kind:?}");
    Error::request("result-missing", what, "`gguf graph` lists what it computes")
}

fn no_sequence(sequence: usize) -> Error {
    let what = format!("there is no sequence {sequence}");
    Error::Caller(Box::new(
        Finding::error("context-full", what).help("make room for more sequences"),
    ))
}
