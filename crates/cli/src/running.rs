//! Flags of the commands that run a model.

use std::num::NonZeroUsize;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use gguf::Metadata;
use gguf_graph::Pooling;
use gguf_kit::run::{ExecutorOptions, GraphSource, LoadedModel, load};
use gguf_runtime::{Arithmetic, CacheType, Instructions};

use crate::failure::Failure;
use crate::terminal;

/// How a model is run.
#[derive(clap::Args)]
// Its group would bear the name of the one that it is part of.
#[group(skip)]
pub struct RunArgs {
    /// Which computation graph: that of the architecture, or the one stored in the file. `auto` takes
    /// the stored one where the architecture is unknown.
    #[arg(long, value_enum, default_value_t = Graph::Auto)]
    graph: Graph,
    /// Add a LoRA adapter (GGUF), with a factor.
    #[arg(long, value_name = "FILE[:SCALE]", value_parser = adapter)]
    lora: Vec<(String, f32)>,
    /// How caches store keys and values [default: f16; f32 where models are judged].
    #[arg(long, value_enum, alias = "ctk")]
    cache_type: Option<Cache>,
    /// Which instructions products are computed by, for tests and measurements. Those in 8 bits give the
    /// same bits by all [default: the best that this processor has].
    #[arg(long, value_parser = instructions())]
    instructions: Option<Instructions>,
    /// Do not keep weights in memory once more in the order in which generating reads them. Slower, with
    /// less memory; the results are the same.
    #[arg(long)]
    no_repack: bool,
    /// Threads [default: one per core].
    #[arg(short, long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

/// Which computation graph a command takes.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Graph {
    Auto,
    Built,
    Stored,
}

/// How caches store keys and values.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Cache {
    F32,
    F16,
    #[value(name = "q8_0")]
    Q8_0,
}

/// How products are computed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Sums {
    /// In F32: for measuring.
    Exact,
    /// With activations rounded to 8 bits.
    Fast,
}

fn instructions() -> impl TypedValueParser<Value = Instructions> {
    PossibleValuesParser::new(Instructions::ALL.map(Instructions::name)).map(|name| {
        let found = Instructions::ALL.into_iter().find(|set| set.name() == name);
        found.expect("only names of sets are possible")
    })
}

fn adapter(text: &str) -> Result<(String, f32), String> {
    match text.rsplit_once(':').map(|(file, scale)| (file, scale.parse::<f32>())) {
        Some((file, Ok(scale))) if scale.is_finite() => Ok((file.to_owned(), scale)),
        // The colon is one of the location.
        _ => Ok((text.to_owned(), 1.0)),
    }
}

impl Graph {
    /// Where it comes from.
    pub fn source(self) -> GraphSource {
        match self {
            Self::Auto => GraphSource::Auto,
            Self::Built => GraphSource::Built,
            Self::Stored => GraphSource::Stored,
        }
    }
}

impl RunArgs {
    /// The model that `source` names, ready to run.
    pub fn open(&self, source: &str, sums: Sums) -> Result<LoadedModel, Failure> {
        self.open_pooled(source, sums, None)
    }

    /// The same, with a pooling instead of the model's own.
    pub fn open_pooled(
        &self,
        source: &str,
        sums: Sums,
        pooling: Option<Pooling>,
    ) -> Result<LoadedModel, Failure> {
        Ok(load(source, &ExecutorOptions { pooling, ..self.options(sums) })?)
    }

    /// How it is run.
    pub fn options(&self, sums: Sums) -> ExecutorOptions {
        let graph = self.graph.source();
        let arithmetic = match sums {
            Sums::Exact => Arithmetic::Exact,
            Sums::Fast => Arithmetic::Fast,
        };
        let (adapters, instructions) = (self.lora.clone(), self.instructions);
        let no_repacking = self.no_repack;
        ExecutorOptions { graph, arithmetic, instructions, no_repacking, adapters, pooling: None }
    }

    /// How caches store numbers.
    pub fn cache_type(&self) -> CacheType {
        self.cache_type_or(CacheType::F16)
    }

    /// The same, with another default.
    pub fn cache_type_or(&self, default: CacheType) -> CacheType {
        self.cache_type.map_or(default, CacheType::from)
    }
}

impl From<Cache> for CacheType {
    fn from(cache: Cache) -> Self {
        match cache {
            Cache::F32 => Self::F32,
            Cache::F16 => Self::F16,
            Cache::Q8_0 => Self::Q8_0,
        }
    }
}

/// The longest input that the model was trained on.
pub fn trained_context(metadata: &Metadata) -> Option<usize> {
    let architecture = metadata.architecture()?;
    usize::try_from(metadata.u64(&format!("{architecture}.context_length"))?).ok()
}

/// Says that a context is longer than the model was trained on.
pub fn warn_of_length(metadata: &Metadata, tokens: usize) {
    if let Some(trained) = trained_context(metadata).filter(|trained| tokens > *trained) {
        terminal::warning(format!(
            "{tokens} tokens are more than the {trained} that the model was trained on"
        ));
    }
}
