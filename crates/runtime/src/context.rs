//! Sequences of tokens that a model has seen.

use std::ops::Range;
use std::sync::Arc;

use gguf::units::bytes_apart;
use gguf::{Error, Finding};
use gguf_graph::{Graph, OutputKind};
use gguf_store::Progress;

use crate::batch::Batch;
use crate::cache::CacheType;
use crate::executor::Executor;
use crate::memory;
use crate::observer::Observer;
use crate::run::{Between, Free, Inputs, run, run_some, sees_whole_batch};
use crate::state::Sequence;
use crate::value::Value;
use crate::watch::Watch;

/// How large a context is.
#[derive(Clone, Copy, Debug)]
pub struct ContextOptions {
    /// Tokens of a sequence at most.
    pub tokens: usize,
    /// Sequences at most.
    pub sequences: usize,
    /// How caches store numbers.
    pub cache_type: CacheType,
    /// Tokens that are computed together at most; a larger batch is cut. Encoders see all at once.
    pub batch: usize,
    /// Bytes that caches and states, and beside them the values of a batch, may take at most.
    pub memory: u64,
}

impl Default for ContextOptions {
    /// One sequence of 4096 tokens, in batches of 512, with caches of 64 GiB at most.
    fn default() -> Self {
        Self {
            tokens: 4096,
            sequences: 1,
            cache_type: CacheType::default(),
            batch: 512,
            memory: 64 << 30,
        }
    }
}

impl ContextOptions {
    /// Bytes that full caches and all states take for a model of this graph; but for what an encoder
    /// stores, whose length nobody knows before.
    pub fn byte_len(&self, graph: &Graph) -> u64 {
        memory::states(graph, *self).into_iter().fold(0, u64::saturating_add)
    }
}

/// What a model remembers of some sequences.
pub struct Context {
    executor: Arc<Executor>,
    options: ContextOptions,
    sequences: Vec<Sequence>,
    /// Memory that the next run uses again: no more than the values of the last one took.
    free: Free,
}

impl Context {
    /// Sequences without a token.
    ///
    /// # Errors
    /// `memory-budget` if full caches would take more than allowed; nothing is allocated then.
    pub fn new(executor: Arc<Executor>, options: ContextOptions) -> Result<Self, Error> {
        let needed = options.byte_len(executor.graph());
        if needed > options.memory {
            let [needed, allowed] = bytes_apart(needed, options.memory);
            let what = format!(
                "{} sequences of {} tokens need {needed} for caches and states, {allowed} are allowed",
                options.sequences, options.tokens
            );
            let help = "make the context shorter, or the cache type smaller";
            return Err(Error::request("memory-budget", what, help));
        }
        let sequence = |_| Sequence::new(executor.graph(), options.cache_type, options.tokens);
        let sequences = (0..options.sequences).map(sequence).collect();
        Ok(Self { executor, options, sequences, free: Free::default() })
    }

    /// The model.
    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    /// Tokens that a sequence has; 0 if there is no such sequence.
    pub fn len(&self, sequence: usize) -> usize {
        self.sequences.get(sequence).map_or(0, |sequence| sequence.len)
    }

    /// Tokens that a sequence still has room for.
    pub fn room(&self, sequence: usize) -> usize {
        self.options.tokens.saturating_sub(self.len(sequence))
    }

    /// Whether no sequence has a token.
    pub fn is_empty(&self) -> bool {
        self.sequences.iter().all(|sequence| sequence.len == 0)
    }

    /// Makes a sequence empty. What its states took stays for its next tokens.
    pub fn clear(&mut self, sequence: usize) {
        if let Some(sequence) = self.sequences.get_mut(sequence) {
            sequence.clear(self.executor.graph());
        }
    }

    /// Gives sequences the tokens of another one, as if each had seen them: texts that begin alike are
    /// computed once to where they part. What does not exist stays so.
    pub fn copy(&mut self, from: usize, to: Range<usize>) {
        let Some(sequence) = self.sequences.get(from).cloned() else { return };
        for number in to.filter(|number| *number != from) {
            if let Some(copy) = self.sequences.get_mut(number) {
                copy.clone_from(&sequence);
            }
        }
    }

    /// Forgets the tokens of a sequence from position `len` on. Of models with other states than caches
    /// a sequence can only be kept whole or cleared: then nothing changes, and the answer is `false`.
    pub fn truncate(&mut self, sequence: usize, len: usize) -> bool {
        let Some(sequence) = self.sequences.get_mut(sequence) else { return false };
        if len < sequence.len && !sequence.truncate(len) {
            return false;
        }
        true
    }

    /// Computes what comes out for a batch: one row for each token whose output is asked for, or, of
    /// what is made of a whole text, for each sequence of the batch in the order of their first tokens.
    ///
    /// A model without states, such as an encoder of text, keeps nothing: its sequences stay empty, and
    /// each run stands for itself.
    ///
    /// # Errors
    /// `token-out-of-range`, `context-full`, `result-missing` if the model does not compute that
    /// kind, [`Error::Interrupted`]. After an error the sequences of the batch are to be cleared.
    pub fn run(
        &mut self,
        batch: &Batch,
        kind: OutputKind,
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        // Begun among the threads that do the work: else each operation would wake them, and be waited for.
        rayon::scope(|_| self.run_watched(batch, kind, &Watch::new(progress)))
    }

    /// The same, while `observer` looks on.
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

    /// Computes some operations of the main program, by their numbers, for a batch that is not cut, given what
    /// those before them made: for those who look at a model operation by operation. Returns what later
    /// operations read on the way to `kind`, and at the end that itself; `observer` looks on. Its sequences are to be
    /// empty, and stay so; a state that operations on both sides of a border use does not cross it.
    ///
    /// # Errors
    /// `request-invalid` if the graph has no such operations; as [`Context::run`].
    pub fn run_between(
        &mut self,
        batch: &Batch,
        ops: Range<usize>,
        before: Between,
        kind: OutputKind,
        observer: Option<&dyn Observer>,
        progress: &dyn Progress,
    ) -> Result<Between, Error> {
        let executor = self.executor.clone();
        let (program, shapes) = executor.graph().main();
        let Some((wanted, _)) = executor.graph().output(kind) else { return Err(no_result(kind)) };
        if ops.start > ops.end || ops.end > program.ops.len() {
            let what = format!("the graph has {} operations, no {ops:?}", program.ops.len());
            return Err(Error::request("request-invalid", what, "ask for those it has"));
        }
        self.accept(batch, false)?;
        let mut watch = Watch::new(progress);
        watch.observer = observer;
        let inputs = Inputs::Tokens(&batch.tokens);
        let (sequences, options, free) = (&mut self.sequences, &self.options, &mut self.free);
        let between = rayon::scope(|_| {
            let main = (program, shapes);
            run_some(
                &executor,
                main,
                &[wanted],
                ops.clone(),
                before,
                inputs,
                sequences,
                options,
                free,
                &watch,
            )
        });
        if program.ops[ops].iter().any(|op| !op.states().is_empty()) {
            batch.tokens.iter().for_each(|token| self.clear(token.sequence));
        }
        between
    }

    fn run_watched(
        &mut self,
        batch: &Batch,
        kind: OutputKind,
        watch: &Watch<'_>,
    ) -> Result<Value, Error> {
        let executor = self.executor.clone();
        let Some((value, shape)) = executor.graph().output(kind) else {
            return Err(no_result(kind));
        };
        self.accept(batch, false)?;
        let width = shape.width as usize;
        let mut all = Value { rows: 0, width, data: Vec::new() };
        let whole = sees_whole_batch(executor.graph().main().0, value);
        // What keeps nothing reads each batch for itself.
        let keeps = !executor.graph().raw().states.is_empty();
        let step = if whole { batch.tokens.len() } else { self.options.batch };
        for tokens in batch.tokens.chunks(step.max(1)) {
            let inputs = Inputs::Tokens(tokens);
            let program = executor.graph().main();
            let made = run(
                &executor,
                program,
                &[value],
                inputs,
                &mut self.sequences,
                &self.options,
                &mut self.free,
                watch,
            )?;
            if keeps {
                tokens.iter().for_each(|token| self.sequences[token.sequence].len += 1);
            }
            for value in made {
                if all.rows == 0 {
                    all = value;
                } else {
                    all.rows += value.rows;
                    all.data.extend(value.data);
                }
            }
        }
        Ok(all)
    }

    /// Runs the encoder for a sequence, on features `[frames, width]`, so that its tokens can attend
    /// to what it stores; returns what the encoder computes.
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

    /// The same, while `observer` looks on.
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

    /// The same of an encoder that reads tokens.
    ///
    /// # Errors
    /// `features-missing` if the model has no encoder of tokens; else as [`Context::run`].
    pub fn encode_tokens(
        &mut self,
        sequence: usize,
        ids: &[u32],
        progress: &dyn Progress,
    ) -> Result<Value, Error> {
        self.clear(sequence);
        self.accept(&Batch::of_sequence(ids, sequence), true)?;
        // The encoder sees one sequence, which is then the first.
        let tokens = Batch::of_all(ids).tokens;
        self.run_encoder(sequence, None, Inputs::Tokens(&tokens), &Watch::new(progress))
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
            let help = "give it tokens alone";
            return Err(Error::request("features-missing", "the model has no encoder", help));
        };
        let wanted = program.0.features_width();
        if wanted != width {
            let said = |width: Option<usize>| match width {
                Some(width) => format!("frames of {width} numbers"),
                None => "tokens".to_owned(),
            };
            let what = format!("the encoder reads {}, not {}", said(wanted), said(width));
            let help = "give it what the model was trained on";
            return Err(Error::request("features-missing", what, help));
        }
        self.clear(sequence);
        let outputs: Vec<_> = program.0.outputs.iter().map(|output| output.value).collect();
        let Some(of) = self.sequences.get_mut(sequence..=sequence) else {
            return Err(no_sequence(sequence));
        };
        let mut made =
            run(&executor, program, &outputs, inputs, of, &self.options, &mut self.free, watch)?;
        Ok(made.pop().unwrap_or_default())
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
                let what = format!("sequence {} has nothing of the encoder", token.sequence);
                let help = "run the encoder first";
                return Err(Error::request("features-missing", what, help));
            }
            *len += 1;
            if *len > self.options.tokens {
                let what = format!("the context has room for {} tokens", self.options.tokens);
                return Err(Error::request(
                    "context-full",
                    what,
                    "make it larger, or the text shorter",
                ));
            }
        }
        Ok(())
    }
}

fn no_result(kind: OutputKind) -> Error {
    let what = format!("the model does not compute {kind:?}");
    Error::request("result-missing", what, "`gguf graph` lists what it does")
}

fn no_sequence(sequence: usize) -> Error {
    let what = format!("there is no sequence {sequence}");
    Error::Caller(Box::new(
        Finding::error("context-full", what).help("make room for more sequences"),
    ))
}
