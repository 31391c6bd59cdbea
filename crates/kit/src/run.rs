//! Loading models for execution.

use std::path::PathBuf;
use std::sync::Arc;

use gguf::Metadata;
use gguf_graph::{Graph, Pooling};
use gguf_lora::Adapter;
pub use gguf_models::GraphSource;
use gguf_pipeline::Job;
use gguf_runtime::{Executor, InstructionSet, MemoryBudget, Precision};
use gguf_store::Model;
use gguf_store::digest::hex;
use sha2::{Digest, Sha256};

use crate::{Error, open};

/// Options of an executor.
#[derive(Clone, Debug, Default)]
pub struct ExecutorOptions {
    /// Origin of the computation graph.
    pub graph: GraphSource,
    /// Precision of matmuls.
    pub precision: Precision,
    /// Instruction set of the 8-bit kernels; `None` for the best one of the processor.
    pub instructions: Option<InstructionSet>,
    /// Disables weight repacking: token generation is slower and takes less memory; results are equal.
    pub no_repacking: bool,
    /// Memory budget in bytes; `None` for a tenth of the machine's memory, and the size of the weights.
    pub memory_limit: Option<u64>,
    /// Sources of LoRA adapters with their scales.
    pub adapters: Vec<(String, f32)>,
    /// Pooling type; `None` for that of the model.
    pub pooling: Option<Pooling>,
}

/// A model that is loaded for execution.
pub struct LoadedModel {
    /// The graph with its weights.
    pub executor: Arc<Executor>,
    /// Metadata of the model.
    pub metadata: Metadata,
    /// Files of the model, which no output may replace.
    pub files: Vec<PathBuf>,
    pub(crate) model: Model,
    /// LoRA adapters with their scales.
    adapters: Vec<(Model, f32)>,
}

impl LoadedModel {
    /// Returns a digest of 64 hexadecimal digits of all that determines outputs besides precision and instruction set: the
    /// version of gguf-kit, the graph, and the header and a sample of rows of each tensor of the model and its adapters.
    ///
    /// # Errors
    /// If a tensor cannot be read.
    pub fn digest(&self) -> Result<String, Error> {
        let mut hasher = Sha256::new();
        hasher.update(Job::copy(&self.model).fingerprint()?);
        for (adapter, scale) in &self.adapters {
            hasher.update(Job::copy(adapter).fingerprint()?);
            hasher.update(scale.to_le_bytes());
        }
        hasher.update(serde_json::to_string(self.executor.graph().raw()).unwrap_or_default());
        Ok(hex(&hasher.finalize()))
    }
}

/// Returns the computation graph of a model.
///
/// # Errors
/// As [`gguf_models::model_graph`].
pub fn model_graph(model: &Model, source: GraphSource) -> Result<Graph, Error> {
    gguf_models::model_graph(model.metadata(), Executor::tensors(model), source)
}

/// Loads the model that `source` names.
///
/// # Errors
/// If the model cannot be opened, has no graph, or its tensors do not fit the graph.
pub fn load(source: &str, options: &ExecutorOptions) -> Result<LoadedModel, Error> {
    let opened = open(source)?;
    let files = opened.files().map(PathBuf::from).collect();
    load_model(&opened.into_model(), files, source, options)
}

/// Loads an open model with the given files; messages name it `source`.
pub(crate) fn load_model(
    model: &Model,
    files: Vec<PathBuf>,
    source: &str,
    options: &ExecutorOptions,
) -> Result<LoadedModel, Error> {
    let in_file = |error: Error| error.in_file(source.as_ref());
    let mut graph = model_graph(model, options.graph).map_err(in_file)?;
    if let Some(kind) = options.pooling {
        graph = graph.pooled(kind)?;
    }
    let adapters = adapters(options)?;
    let executor = executor(source, model, graph, options, &adapters)?;
    let (metadata, model) = (model.metadata().clone(), model.clone());
    Ok(LoadedModel { executor, metadata, files, model, adapters })
}

/// Opens the LoRA adapters, and returns them with their scales.
pub(crate) fn adapters(options: &ExecutorOptions) -> Result<Vec<(Model, f32)>, Error> {
    let opened = |(source, scale): &(String, f32)| Ok((open(source)?.into_model(), *scale));
    options.adapters.iter().map(opened).collect()
}

/// Creates an executor with LoRA adapters; messages name the model `source`.
pub(crate) fn executor(
    source: &str,
    model: &Model,
    graph: Graph,
    options: &ExecutorOptions,
    adapters: &[(Model, f32)],
) -> Result<Arc<Executor>, Error> {
    let adapter = |(model, scale): &(Model, f32)| Ok((Adapter::read(model)?, *scale));
    let adapters: Vec<_> = adapters.iter().map(adapter).collect::<Result<_, Error>>()?;
    let executor = match options.memory_limit {
        Some(limit) => Executor::within(model, graph, options.precision, MemoryBudget::new(limit)),
        None => Executor::new(model, graph, options.precision),
    };
    let mut executor = executor.map_err(|error| error.in_file(source.as_ref()))?;
    if let Some(instructions) = options.instructions {
        executor = executor.with_instructions(instructions)?;
    }
    if options.no_repacking {
        executor = executor.with_repacking(0);
    }
    Ok(Arc::new(executor.with_adapters(model, &adapters)?))
}
