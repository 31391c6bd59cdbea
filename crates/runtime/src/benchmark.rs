//! Throughput of prompt processing and token generation, and the limits of the machine.

use std::sync::Arc;
use std::time::Instant;

use gguf::Error;
use gguf_graph::{OutputKind, Workload};
use gguf_store::{Model, ModelTensor, Progress};

use crate::graph_cost::GraphCost;
use crate::machine::Machine;
use crate::options::BATCH;
use crate::system_memory;
use crate::{
    Batch, CacheType, Context, ContextOptions, Executor, InstructionSet, Precision, matmul,
};

/// Parameters of a benchmark.
#[derive(Clone, Debug)]
pub struct BenchmarkOptions {
    /// Number of prompt tokens; 0 skips prompt processing.
    pub prompt: usize,
    /// Number of generated tokens; 0 skips generation.
    pub generated: usize,
    /// Number of tokens in the context before each test.
    pub depth: usize,
    /// Number of timed repetitions, after one warm-up run.
    pub repetitions: usize,
    /// Element type of the KV cache.
    pub cache_type: CacheType,
}

/// Measured throughput and the cost that limits it.
#[derive(Clone, Debug)]
pub struct Throughput {
    /// Tokens per second of each repetition.
    pub tokens_per_second: Vec<f64>,
    /// Bytes of weights read per run of the graph.
    pub bytes: u64,
    /// Multiply-adds per token.
    pub multiply_adds: u64,
    /// Runs of the graph per token.
    pub runs_per_token: f64,
    /// Whether most of the weights are multiplied in INT8.
    pub is_int8: bool,
}

impl Throughput {
    /// Returns the mean of the repetitions.
    pub fn mean(&self) -> f64 {
        self.tokens_per_second.iter().sum::<f64>() / self.tokens_per_second.len().max(1) as f64
    }

    /// Returns the sample standard deviation of the repetitions; 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        let (mean, n) = (self.mean(), self.tokens_per_second.len());
        let squares = self.tokens_per_second.iter().map(|x| (x - mean) * (x - mean));
        if n < 2 { 0.0 } else { (squares.sum::<f64>() / (n - 1) as f64).sqrt() }
    }

    /// Returns the tokens per second at which memory bandwidth is exhausted.
    pub fn memory_limit(&self, machine: Machine) -> f64 {
        machine.bytes_per_second / (self.bytes as f64 * self.runs_per_token).max(1.0)
    }

    /// Returns the tokens per second at which INT8 arithmetic is exhausted; `None` if it is not measured on this processor,
    /// or the multiplications are not in INT8.
    pub fn int8_limit(&self, machine: Machine) -> Option<f64> {
        let rate = machine.int8_multiply_adds_per_second.filter(|_| self.is_int8)?;
        Some(rate / (self.multiply_adds as f64).max(1.0))
    }

    /// Returns the tokens per second at which F32 arithmetic is exhausted. Integer dot products can be faster.
    pub fn float_limit(&self, machine: Machine) -> f64 {
        machine.multiply_adds_per_second / (self.multiply_adds as f64).max(1.0)
    }
}

/// Results of a benchmark.
#[derive(Clone, Debug)]
pub struct BenchmarkReport {
    /// Limits of the machine.
    pub machine: Machine,
    /// Instruction set of the 8-bit kernels.
    pub instructions: InstructionSet,
    /// Prompt processing.
    pub prompt: Option<Throughput>,
    /// Token generation.
    pub generation: Option<Throughput>,
    /// Bytes of all tensors.
    pub model_bytes: u64,
    /// Bytes of repacked weights.
    pub repacked_bytes: u64,
    /// Peak memory of the process in bytes, mapped files included; `None` where the system does not report it.
    pub peak_memory: Option<u64>,
}

impl BenchmarkReport {
    /// Measures the throughput of `executor`, which runs `model`, and the limits of the machine.
    ///
    /// # Errors
    /// As [`Context::run`].
    pub fn measure(
        model: &Model,
        executor: &Arc<Executor>,
        options: &BenchmarkOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let byte_len = |tensor: &ModelTensor| tensor.info.byte_len().unwrap_or(0);
        let model_bytes = model.tensors().iter().map(byte_len).sum();
        let cost = |tokens: usize, before: usize| {
            let workload =
                Workload { tokens: tokens as u64, outputs: 1, past: before as u64, frames: 0 };
            GraphCost::new(model, executor.graph(), workload)
        };
        let prompt_cost = cost(options.prompt, options.depth);
        let token_cost = cost(1, options.depth + options.generated / 2);
        let is_int8 = executor.precision == Precision::Fast && are_integers(model);
        let rates = Rates::measure(executor, options, progress)?;
        let prompt = rates.prompt.map(|tokens_per_second| Throughput {
            tokens_per_second,
            bytes: prompt_cost.bytes,
            multiply_adds: prompt_cost.multiply_adds / options.prompt as u64,
            runs_per_token: 1.0 / options.prompt.min(BATCH) as f64,
            is_int8,
        });
        let generation = rates.generation.map(|tokens_per_second| Throughput {
            tokens_per_second,
            bytes: token_cost.bytes,
            multiply_adds: token_cost.multiply_adds,
            runs_per_token: 1.0,
            is_int8,
        });
        // Measuring the machine allocates memory itself.
        let peak_memory = system_memory::peak();
        Ok(Self {
            machine: Machine::measure(),
            instructions: executor.instructions(),
            prompt,
            generation,
            model_bytes,
            repacked_bytes: executor.repacked_bytes(),
            peak_memory,
        })
    }
}

/// Whether most weights have kernels for INT8.
fn are_integers(model: &Model) -> bool {
    let (mut all, mut integers) = (0u64, 0u64);
    for tensor in model.tensors() {
        let elements = tensor.info.shape.elements().unwrap_or(0);
        all = all.saturating_add(elements);
        if matmul::multiplies_integers(tensor.info.tensor_type) {
            integers = integers.saturating_add(elements);
        }
    }
    integers > all / 2
}

/// Tokens per second of each repetition.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// Prompt processing.
    pub prompt: Option<Vec<f64>>,
    /// Token generation.
    pub generation: Option<Vec<f64>>,
}

impl Rates {
    /// Measures prompt processing and token generation, one after the other.
    ///
    /// # Errors
    /// As [`Trial::measure`].
    pub fn measure(
        executor: &Arc<Executor>,
        options: &BenchmarkOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let measure = |prompt: usize, generated: usize| {
            let trial = Trial { depth: options.depth, prompt, generated };
            let is_wanted = prompt + generated > 0;
            let BenchmarkOptions { repetitions, cache_type, .. } = *options;
            is_wanted
                .then(|| trial.measure(executor, repetitions, cache_type, progress))
                .transpose()
        };
        Ok(Self { prompt: measure(options.prompt, 0)?, generation: measure(0, options.generated)? })
    }
}

/// Timed work: a prompt, then generated tokens, both after tokens that are not timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Number of tokens in the context at the start; they are not timed.
    pub depth: usize,
    /// Number of prompt tokens, processed in batches of up to 512.
    pub prompt: usize,
    /// Number of tokens generated after the prompt, one at a time.
    pub generated: usize,
}

impl Trial {
    /// Returns the tokens per second of each repetition, after one warm-up run.
    ///
    /// # Errors
    /// As [`Context::new`] and [`Context::run`].
    pub fn measure(
        self,
        executor: &Arc<Executor>,
        repetitions: usize,
        cache_type: CacheType,
        progress: &dyn Progress,
    ) -> Result<Vec<f64>, Error> {
        let Self { depth, prompt, generated } = self;
        let kind = match executor.graph().output(OutputKind::Logits) {
            Some(_) => OutputKind::Logits,
            None => OutputKind::Hidden,
        };
        let options = ContextOptions {
            tokens: (depth + prompt + generated).max(1),
            batch: prompt.max(depth).clamp(1, BATCH),
            cache_type,
            // The second sequence keeps the state at the start: recurrent states cannot be truncated.
            sequences: if depth > 0 { 2 } else { 1 },
        };
        let mut context = Context::new(executor.clone(), options)?;
        let vocabulary = executor.vocabulary_len().unwrap_or(1) as u64;
        // Distinct ids, because equal tokens may be routed to the same experts.
        let id = |i: usize| ((i as u64 + 1).wrapping_mul(0x9e37_79b9) % vocabulary.max(1)) as u32;
        let ids: Vec<u32> = (0..depth + prompt + generated).map(id).collect();
        let (before, timed) = ids.split_at(depth);
        if !before.is_empty() {
            context.run(&Batch::last_output(before, 1), kind, progress)?;
        }
        let (prompt, generated) = timed.split_at(prompt);
        let mut rates = Vec::new();
        for repetition in 0..=repetitions {
            match depth {
                0 => context.clear(0),
                _ => context.copy(1, 0..1),
            }
            let start = Instant::now();
            if !prompt.is_empty() {
                context.run(&Batch::last_output(prompt, 0), kind, progress)?;
            }
            for id in generated.chunks(1) {
                context.run(&Batch::last_output(id, 0), kind, progress)?;
            }
            if repetition > 0 {
                rates.push(timed.len() as f64 / start.elapsed().as_secs_f64());
            }
        }
        Ok(rates)
    }
}
