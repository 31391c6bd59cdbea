//! How fast a model runs here, and how near that is to what the machine allows.

use std::sync::Arc;
use std::time::Instant;

use gguf_graph::{Load, OutputKind};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Instructions, machine};
use gguf_store::Progress;

use super::{Options, executor_of, graph, graph_of};
use crate::{Error, open};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Tokens of a prompt that is read at once; 0 for none.
    pub prompt: usize,
    /// Tokens that are made one after the other, from an empty context on; 0 for none.
    pub generated: usize,
    /// How often each is done, after one time that does not count.
    pub repetitions: usize,
    /// How caches store numbers.
    pub cache_type: CacheType,
}

/// A speed, and what limits it.
#[derive(Clone, Debug)]
pub struct Speed {
    /// Tokens per second of each repetition.
    pub tokens_per_second: Vec<f64>,
    /// Bytes of weights that are read, per run of the graph.
    pub bytes: u64,
    /// Pairs of numbers that are multiplied and added, per token.
    pub multiply_adds: u64,
    /// Runs of the graph per token.
    pub runs_per_token: f64,
}

impl Speed {
    /// The mean of the repetitions.
    pub fn mean(&self) -> f64 {
        self.tokens_per_second.iter().sum::<f64>() / self.tokens_per_second.len().max(1) as f64
    }

    /// How far repetitions are from the mean, as a standard deviation of a sample; 0 for one.
    pub fn deviation(&self) -> f64 {
        let (mean, n) = (self.mean(), self.tokens_per_second.len());
        let squares = self.tokens_per_second.iter().map(|x| (x - mean) * (x - mean));
        if n < 2 { 0.0 } else { (squares.sum::<f64>() / (n - 1) as f64).sqrt() }
    }

    /// Tokens per second at which weights come from memory as fast as they can.
    pub fn limit_of_memory(&self, machine: Machine) -> f64 {
        machine.bytes_per_second / (self.bytes as f64 * self.runs_per_token).max(1.0)
    }

    /// Tokens per second at which the machine does nothing but multiply and add in F32. Sums of
    /// integers can be faster.
    pub fn limit_of_floats(&self, machine: Machine) -> f64 {
        machine.multiply_adds_per_second / (self.multiply_adds as f64).max(1.0)
    }
}

/// What the machine can do, with the threads that are used.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Threads.
    pub threads: usize,
    /// Bytes that they read from memory together.
    pub bytes_per_second: f64,
    /// Pairs of F32 numbers that they multiply and add together, from registers.
    pub multiply_adds_per_second: f64,
}

impl Machine {
    /// Measures it, which takes about a second.
    pub fn measure() -> Self {
        Self {
            threads: rayon::current_num_threads(),
            bytes_per_second: machine::read_bandwidth(SCAN),
            multiply_adds_per_second: machine::multiply_adds(),
        }
    }
}

/// How fast a model runs.
#[derive(Clone, Debug)]
pub struct Report {
    /// What limits it.
    pub machine: Machine,
    /// What products in 8 bits were computed by.
    pub instructions: Instructions,
    /// Reading a prompt.
    pub prompt: Option<Speed>,
    /// Making tokens one after the other.
    pub generation: Option<Speed>,
    /// Bytes of all tensors.
    pub model_bytes: u64,
    /// Bytes of weights that were in memory once more, in the order in which generating reads them.
    pub repacked_bytes: u64,
    /// The most memory that this process had, in bytes, mapped files included; `None` where the
    /// system does not say.
    pub peak_memory: Option<u64>,
}

/// Bytes that are scanned to measure memory.
const SCAN: usize = 256 << 20;

/// Measures the model that `word` names.
///
/// # Errors
/// As [`super::open_to_run`] and [`Context::run`].
pub fn bench(
    word: &str,
    options: &Options,
    trial: &Trial,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let model = open(word)?.into_model();
    let in_file = |error: Error| error.in_file(word.as_ref());
    let graph = graph_of(&model, options.graph).map_err(in_file)?;
    let bytes_of = |tensor: &gguf_store::ModelTensor| tensor.info.byte_len().unwrap_or(0);
    let model_bytes = model.tensors().iter().map(bytes_of).sum();
    let cost = |tokens: usize, before: usize| {
        let load = Load { tokens: tokens as u64, outputs: 1, before: before as u64, frames: 0 };
        graph::report(&model, &graph, load)
    };
    let of_prompt = cost(trial.prompt, 0);
    let of_token = cost(1, trial.generated / 2);
    let executor = executor_of(word, &model, graph, options)?;
    let rates = rates(&executor, trial, progress)?;
    let prompt = rates.prompt.map(|tokens_per_second| Speed {
        tokens_per_second,
        bytes: of_prompt.bytes,
        multiply_adds: of_prompt.multiply_adds / trial.prompt as u64,
        runs_per_token: 1.0 / trial.prompt as f64,
    });
    let generation = rates.generation.map(|tokens_per_second| Speed {
        tokens_per_second,
        bytes: of_token.bytes,
        multiply_adds: of_token.multiply_adds,
        runs_per_token: 1.0,
    });
    // Before the machine is measured, which takes memory of its own.
    let peak_memory = peak_memory();
    let (machine, instructions) = (Machine::measure(), executor.instructions());
    let repacked_bytes = executor.repacked();
    Ok(Report {
        machine,
        instructions,
        prompt,
        generation,
        model_bytes,
        repacked_bytes,
        peak_memory,
    })
}

/// Tokens per second of each repetition.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// Reading a prompt.
    pub prompt: Option<Vec<f64>>,
    /// Making tokens one after the other.
    pub generation: Option<Vec<f64>>,
}

/// How fast a model is, without what limits it.
///
/// # Errors
/// As [`Context::run`].
pub fn rates(
    executor: &Arc<Executor>,
    trial: &Trial,
    progress: &dyn Progress,
) -> Result<Rates, Error> {
    let kind = match executor.graph().output(OutputKind::Logits) {
        Some(_) => OutputKind::Logits,
        None => OutputKind::Hidden,
    };
    let vocabulary = executor.vocabulary_len().unwrap_or(1) as u64;
    let tokens = trial.prompt.max(trial.generated).max(1);
    let context_options = ContextOptions {
        tokens,
        batch: tokens,
        cache_type: trial.cache_type,
        ..Default::default()
    };
    let mut context = Context::new(executor.clone(), context_options)?;
    // Ids that differ: some models send equal ones to the same experts.
    let id = |i: usize| ((i as u64 + 1).wrapping_mul(0x9e37_79b9) % vocabulary.max(1)) as u32;
    let mut measure = |count: usize, at_once: usize| -> Result<Option<Vec<f64>>, Error> {
        if count == 0 {
            return Ok(None);
        }
        let ids: Vec<u32> = (0..count).map(id).collect();
        let mut rates = Vec::new();
        for repetition in 0..=trial.repetitions {
            context.clear(0);
            let start = Instant::now();
            for ids in ids.chunks(at_once) {
                context.run(&Batch::of_last(ids, 0), kind, progress)?;
            }
            if repetition > 0 {
                rates.push(count as f64 / start.elapsed().as_secs_f64());
            }
        }
        Ok(Some(rates))
    };
    let prompt = measure(trial.prompt, trial.prompt)?;
    Ok(Rates { prompt, generation: measure(trial.generated, 1)? })
}

/// The most memory that this process had.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
