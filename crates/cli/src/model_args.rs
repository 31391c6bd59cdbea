//! Flags of commands that run a model.

use std::num::NonZeroUsize;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use gguf::{Metadata, units};
use gguf_graph::Pooling;
use gguf_kit::run::{ExecutorOptions, GraphSource, LoadedModel, load};
use gguf_runtime::{CacheType, Executor, InstructionSet, Precision};

use crate::downloads;
use crate::failure::Failure;
use crate::listing::parse_size;
use crate::terminal;

/// Runtime options.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct RunArgs {
    /// Computation graph: of the architecture, or stored in the file. `auto` uses the stored graph if the
    /// architecture is unknown.
    #[arg(long, value_enum, default_value_t = Graph::Auto, help_heading = "Advanced", hide_short_help = true)]
    graph: Graph,
    /// LoRA adapter (GGUF), with an optional scale. May be repeated.
    #[arg(long, value_name = "FILE[:SCALE]", value_parser = adapter, help_heading = "Advanced")]
    lora: Vec<(String, f32)>,
    /// Data type of the KV cache [default: f32 in exact precision and for evaluation, else f16].
    #[arg(long, value_name = "TYPE", alias = "ctk", value_parser = cache_types(), help_heading = "Advanced")]
    cache_type: Option<CacheType>,
    /// SIMD instruction set, for benchmarking. 8-bit kernels give identical bits with every set [default: best
    /// of this CPU].
    #[arg(long, value_name = "SET", value_parser = instructions(), help_heading = "Advanced", hide_short_help = true)]
    instructions: Option<InstructionSet>,
    /// Disable weight repacking, which speeds up token generation at the cost of memory. Results do not change.
    #[arg(long, help_heading = "Advanced", hide_short_help = true)]
    no_repack: bool,
    /// Maximum memory for KV cache, states, values and copies of weights, such as 8G [default: a tenth of the machine's
    /// memory, and the size of the weights].
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Advanced")]
    memory_limit: Option<u64>,
    /// Number of threads [default: one per core].
    #[arg(short, long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

/// Source of the computation graph.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Graph {
    Auto,
    Built,
    Stored,
}

/// Compute precision: F32 accumulation (exact) or 8-bit activations (fast).
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum PrecisionArg {
    /// F32 accumulation, for evaluation.
    Exact,
    /// 8-bit activations, for speed.
    Fast,
}

fn instructions() -> impl TypedValueParser<Value = InstructionSet> {
    PossibleValuesParser::new(InstructionSet::ALL.map(InstructionSet::name)).map(|name| {
        let found = InstructionSet::ALL.into_iter().find(|set| set.name() == name);
        found.expect("the parser accepts only names of sets")
    })
}

/// Returns a parser of the types of KV caches.
pub fn cache_types() -> impl TypedValueParser<Value = CacheType> {
    PossibleValuesParser::new(CacheType::ALL.map(CacheType::name))
        .map(|name| CacheType::from_name(&name).expect("the parser accepts only names of types"))
}

fn adapter(text: &str) -> Result<(String, f32), String> {
    match text.rsplit_once(':').map(|(file, scale)| (file, scale.parse::<f32>())) {
        Some((file, Ok(scale))) if scale.is_finite() => Ok((file.to_owned(), scale)),
        // The colon belongs to the location.
        _ => Ok((text.to_owned(), 1.0)),
    }
}

impl Graph {
    /// Converts to the library's type.
    pub fn source(self) -> GraphSource {
        match self {
            Self::Auto => GraphSource::Auto,
            Self::Built => GraphSource::Built,
            Self::Stored => GraphSource::Stored,
        }
    }
}

impl RunArgs {
    /// Opens the model at `source`, ready to run.
    pub fn open(&self, source: &str, precision: PrecisionArg) -> Result<LoadedModel, Failure> {
        self.open_pooled(source, precision, None)
    }

    /// Opens a model with `pooling` instead of the model's own.
    pub fn open_pooled(
        &self,
        source: &str,
        precision: PrecisionArg,
        pooling: Option<Pooling>,
    ) -> Result<LoadedModel, Failure> {
        let source = downloads::local(source)?;
        let model = load(&source, &ExecutorOptions { pooling, ..self.options(precision) })?;
        note_if_too_large(&model.executor);
        Ok(model)
    }

    /// Returns the runtime options.
    pub fn options(&self, precision: PrecisionArg) -> ExecutorOptions {
        let graph = self.graph.source();
        let precision = precision.into();
        let (adapters, instructions) = (self.lora.clone(), self.instructions);
        let no_repacking = self.no_repack;
        let memory_limit = self.memory_limit;
        ExecutorOptions {
            graph,
            precision,
            instructions,
            no_repacking,
            memory_limit,
            adapters,
            pooling: None,
        }
    }

    /// Returns the KV cache type; by default, that of the precision.
    pub fn cache_type(&self, precision: PrecisionArg) -> CacheType {
        self.cache_type_or(CacheType::for_precision(precision.into()))
    }

    /// Returns the KV cache type, or `default`.
    pub fn cache_type_or(&self, default: CacheType) -> CacheType {
        self.cache_type.unwrap_or(default)
    }
}

impl From<PrecisionArg> for Precision {
    fn from(precision: PrecisionArg) -> Self {
        match precision {
            PrecisionArg::Exact => Self::Exact,
            PrecisionArg::Fast => Self::Fast,
        }
    }
}

/// Says how slow a model is that is larger than memory.
fn note_if_too_large(executor: &Executor) {
    if !executor.exceeds_memory() {
        return;
    }
    let read = match executor.evicted_bytes() {
        0 => "experts".to_owned(),
        bytes => units::bytes(bytes),
    };
    terminal::note(format!(
        "the weights do not fit into the available memory: {read} are read from the file again for each token or batch. `gguf \
         recommend` names a type that fits"
    ));
}

/// Returns the context length that the model was trained with.
pub fn trained_context(metadata: &Metadata) -> Option<usize> {
    usize::try_from(gguf_runtime::memory_estimate::trained_context(metadata)?).ok()
}

/// Warns if a context is longer than the model was trained with.
pub fn warn_if_too_long(metadata: &Metadata, tokens: usize) {
    if let Some(trained) = trained_context(metadata).filter(|trained| tokens > *trained) {
        terminal::warning(format!(
            "{tokens} tokens exceed the context length of {trained} that the model was trained with"
        ));
    }
}
