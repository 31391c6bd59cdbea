//! Comparison of the files or types of a model.

use std::path::Path;

use gguf::Error;
use gguf_graph::{Graph, OutputKind};
use gguf_runtime::CacheType;
use gguf_runtime::memory_estimate::{MemoryEstimate, MemoryOptions, trained_context};
use gguf_store::{Model, Progress};

use crate::losses::{self, Loss, LossOrigin};
use crate::speed::{MachineSpeed, Speed};

/// Use of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// Conversations.
    #[default]
    Chat,
    /// Writing programs: long contexts.
    Code,
    /// Embeddings of texts.
    Embed,
}

impl Task {
    /// Returns the default context size in tokens.
    pub fn context(self) -> u64 {
        match self {
            Self::Chat => 8192,
            Self::Code => 32_768,
            Self::Embed => 512,
        }
    }

    /// Returns the tokens per second that a person can wait for: twice the speed of reading. Texts are only read for
    /// embeddings.
    pub fn least_speed(self) -> Option<f64> {
        match self {
            Self::Chat | Self::Code => Some(10.0),
            Self::Embed => None,
        }
    }
}

/// Smallest context that replaces the default one where memory is short.
const LEAST_CONTEXT: u64 = 2048;

/// Size of a batch in tokens.
const BATCH: u64 = 512;

/// Limits and use that the user states.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Memory in bytes.
    pub memory: u64,
    /// Context size in tokens; `None` for that of the task, or a smaller one where memory is short.
    pub context: Option<u64>,
    /// Use of the model.
    pub task: Task,
}

/// A file, or a type that can be made.
pub struct Candidate {
    /// Name of the file, or of the type.
    pub name: String,
    /// Name of the quantization type, if it is one.
    pub type_name: Option<String>,
    /// Whether the file exists.
    pub exists: bool,
    /// Header of the model; data are not read.
    pub model: Model,
    /// Measured mean KL divergence from the original, in nats.
    pub measured_loss: Option<f64>,
}

/// A candidate with its costs.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Name of the file, or of the type.
    pub name: String,
    /// Name of the quantization type, if it is one.
    pub type_name: Option<String>,
    /// Whether the file exists.
    pub exists: bool,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Context size in tokens.
    pub context: u64,
    /// Type of the KV cache.
    pub cache_type: CacheType,
    /// Memory of weights, KV cache and compute buffer.
    pub memory: MemoryEstimate,
    /// Whether it fits the memory.
    pub fits: bool,
    /// Estimated speed.
    pub speed: Speed,
    /// Loss of quality, if known.
    pub loss: Option<Loss>,
}

/// Compared candidates.
#[derive(Clone, Debug)]
pub struct Recommendation {
    /// All candidates, largest first.
    pub choices: Vec<Choice>,
    /// Index of the recommended one; `None` if none fits.
    pub best: Option<usize>,
    /// Reason of the recommendation.
    pub reason: Reason,
}

/// Difference of the mean KL divergence, in nats, that no one notices.
pub const NEGLIGIBLE_LOSS: f64 = 0.01;

/// Reason of a recommendation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The fastest within [`NEGLIGIBLE_LOSS`] of the most accurate of those that generate at least this many tokens per
    /// second.
    Accurate(Option<f64>),
    /// The fastest that fits: none generates the tokens per second of the task.
    Fastest(f64),
    /// None fits the memory.
    NoneFits,
}

/// Compares candidates of one model, measuring this machine as far as `machine` does not know it.
///
/// # Errors
/// If a candidate has no graph, a type has no kernel, or `progress` stopped the work.
pub fn recommend(
    candidates: Vec<Candidate>,
    graph_of: impl Fn(&Model) -> Result<Graph, Error>,
    request: &Request,
    machine: &mut MachineSpeed,
    progress: &dyn Progress,
) -> Result<Recommendation, Error> {
    let mut choices = Vec::new();
    for candidate in candidates {
        let in_file = |error: Error| error.in_file(Path::new(&candidate.name));
        let graph = graph_of(&candidate.model).map_err(in_file)?;
        choices.push(compare(&candidate, &graph, request, machine, progress).map_err(in_file)?);
    }
    choices.sort_by_key(|choice| std::cmp::Reverse(choice.file_bytes));
    let (best, reason) = best(&choices, request.task);
    Ok(Recommendation { choices, best, reason })
}

fn compare(
    candidate: &Candidate,
    graph: &Graph,
    request: &Request,
    machine: &mut MachineSpeed,
    progress: &dyn Progress,
) -> Result<Choice, Error> {
    let model = &candidate.model;
    let (memory, cache_type) = fitting(model, graph, request)?;
    let speed = machine.estimate(model, graph, memory.context, memory.cache_per_token, progress)?;
    let elements = |tensor: &gguf_store::ModelTensor| tensor.info.shape.elements().unwrap_or(0);
    let parameters = model.tensors().iter().map(elements).fold(0, u64::saturating_add);
    let expected = || losses::expected(candidate.type_name.as_deref()?, parameters);
    let measured = candidate
        .measured_loss
        .map(|kl_divergence| Loss { kl_divergence, origin: LossOrigin::Measured });
    Ok(Choice {
        name: candidate.name.clone(),
        type_name: candidate.type_name.clone(),
        exists: candidate.exists,
        file_bytes: model.byte_len(),
        context: memory.context,
        cache_type,
        fits: memory.total() <= request.memory,
        memory,
        speed,
        loss: measured.or_else(expected),
    })
}

/// Returns the memory with the largest context, and the most accurate type of the KV cache, that fit.
fn fitting(
    model: &Model,
    graph: &Graph,
    request: &Request,
) -> Result<(MemoryEstimate, CacheType), Error> {
    let largest = request.context.unwrap_or_else(|| {
        trained_context(model.metadata())
            .map_or(request.task.context(), |n| n.min(request.task.context()))
    });
    let least = request.context.unwrap_or(LEAST_CONTEXT.min(largest));
    // Encoders have no KV cache.
    let types: &[CacheType] = match graph.output(OutputKind::Logits) {
        Some(_) => &[CacheType::F16, CacheType::Q8_0],
        None => &[CacheType::F16],
    };
    let estimate = |context: u64, cache_type: CacheType| {
        let options = MemoryOptions {
            context: Some(context),
            cache_type,
            batch: BATCH,
            ..MemoryOptions::default()
        };
        MemoryEstimate::new(model, graph, &options)
    };
    let mut context = largest;
    loop {
        for cache_type in types {
            let memory = estimate(context, *cache_type)?;
            if memory.total() <= request.memory {
                return Ok((memory, *cache_type));
            }
        }
        if context <= least {
            return Ok((estimate(largest, CacheType::F16)?, CacheType::F16));
        }
        context = (context / 2).max(least);
    }
}

/// Chooses the most accurate candidate that is fast enough, or a faster one that is as good, else the fastest. A candidate
/// without a known loss is only chosen if there is no other.
fn best(choices: &[Choice], task: Task) -> (Option<usize>, Reason) {
    let fitting: Vec<_> = (0..choices.len()).filter(|i| choices[*i].fits).collect();
    if fitting.is_empty() {
        return (None, Reason::NoneFits);
    }
    let least = task.least_speed();
    let is_fast = |i: &usize| least.is_none_or(|least| choices[*i].speed.generation >= least);
    let loss = |i: &usize| {
        let choice = &choices[*i];
        choice.loss.as_ref().map_or(f64::MAX, |loss| loss.kl_divergence)
    };
    let speed = |i: &usize| match task {
        Task::Chat | Task::Code => choices[*i].speed.generation,
        Task::Embed => choices[*i].speed.prompt,
    };
    let fastest = |of: Vec<usize>| of.into_iter().max_by(|a, b| speed(a).total_cmp(&speed(b)));
    let fast: Vec<_> = fitting.iter().copied().filter(is_fast).collect();
    if let Some(least_loss) = fast.iter().map(loss).min_by(f64::total_cmp) {
        let good = fast.into_iter().filter(|i| loss(i) <= least_loss + NEGLIGIBLE_LOSS);
        return (fastest(good.collect()), Reason::Accurate(least));
    }
    (fastest(fitting), Reason::Fastest(least.unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(name: &str, fits: bool, generation: f64, kl_divergence: Option<f64>) -> Choice {
        let memory = MemoryEstimate {
            context: 1,
            batch: 1,
            weights: 0,
            cache: 0,
            cache_per_token: 0,
            compute_buffer: 0,
            host: 0,
            devices: Vec::new(),
        };
        Choice {
            name: name.to_owned(),
            type_name: None,
            exists: true,
            file_bytes: 0,
            context: 1,
            cache_type: CacheType::F16,
            memory,
            fits,
            speed: Speed { prompt: 1.0, generation, generation_at_end: generation },
            loss: kl_divergence
                .map(|kl_divergence| Loss { kl_divergence, origin: LossOrigin::Measured }),
        }
    }

    #[test]
    fn accurate_candidates_that_fit_and_are_fast_are_best() {
        let choices = [
            choice("too large", false, 4.0, Some(0.0)),
            choice("slow", true, 9.0, Some(0.001)),
            choice("accurate", true, 12.0, Some(0.02)),
            choice("as good and faster", true, 14.0, Some(0.03)),
            choice("small", true, 20.0, Some(0.3)),
            choice("unknown", true, 15.0, None),
        ];
        assert_eq!(best(&choices, Task::Chat), (Some(3), Reason::Accurate(Some(10.0))));
        assert_eq!(best(&choices, Task::Embed), (Some(1), Reason::Accurate(None)));
        assert_eq!(best(&choices[..2], Task::Chat), (Some(1), Reason::Fastest(10.0)));
        assert_eq!(best(&choices[..1], Task::Chat), (None, Reason::NoneFits));
        assert_eq!(best(&choices[5..], Task::Chat), (Some(0), Reason::Accurate(Some(10.0))));
    }
}
