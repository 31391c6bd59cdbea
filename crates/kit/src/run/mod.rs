//! Running models: logits, text, vectors, and what a graph costs.

pub mod bench;
pub mod embed;
pub mod generate;
pub mod graph;
pub mod logits;
pub mod transcribe;

use std::path::PathBuf;
use std::sync::Arc;

use gguf::{Finding, Metadata};
use gguf_graph::{Graph, Limits, Pooling, stored};
use gguf_runtime::{Adapter, Arithmetic, Executor, Instructions};
use gguf_store::Model;

use crate::{Error, open};

/// Which graph a model is run by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphSource {
    /// The one that is built from the architecture, or, where that is unknown, the stored one.
    #[default]
    Auto,
    /// The one that is built from the architecture.
    Built,
    /// The one that the file holds.
    Stored,
}

/// How a model is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which graph.
    pub graph: GraphSource,
    /// How products are computed.
    pub arithmetic: Arithmetic,
    /// What products in 8 bits are computed by, instead of the best that this processor has.
    pub instructions: Option<Instructions>,
    /// No weights in memory once more, in the order in which generating reads them: slower, and with less
    /// memory; results are the same.
    pub no_repacking: bool,
    /// Words for low-rank adapters, and by how much each counts.
    pub adapters: Vec<(String, f32)>,
    /// How the tokens of a text become one row, instead of the model's own way.
    pub pooling: Option<Pooling>,
}

/// A model that is ready to run.
pub struct Running {
    /// The graph with its weights.
    pub executor: Arc<Executor>,
    /// Keys and values of the model.
    pub metadata: Metadata,
    /// The files of the model, which no output may replace.
    pub files: Vec<PathBuf>,
}

/// Opens the model that `word` names, to run it.
///
/// # Errors
/// If it cannot be opened, there is no graph for it, or its tensors do not go with the graph.
pub fn open_to_run(word: &str, options: &Options) -> Result<Running, Error> {
    let opened = open(word)?;
    let files = opened.files().map(PathBuf::from).collect();
    run_model(&opened.into_model(), files, word, options)
}

/// The same of a model that is open: `word` is what messages call it, `files` are its files.
pub(crate) fn run_model(
    model: &Model,
    files: Vec<PathBuf>,
    word: &str,
    options: &Options,
) -> Result<Running, Error> {
    let in_file = |error: Error| error.in_file(word.as_ref());
    let mut graph = graph_of(model, options.graph).map_err(in_file)?;
    if let Some(kind) = options.pooling {
        graph = graph.pooled(kind)?;
    }
    let executor = executor_of(word, model, graph, options)?;
    Ok(Running { executor, metadata: model.metadata().clone(), files })
}

/// A graph with the weights of a model that `word` names, and with adapters.
fn executor_of(
    word: &str,
    model: &Model,
    graph: Graph,
    options: &Options,
) -> Result<Arc<Executor>, Error> {
    let adapter = |(word, scale): &(String, f32)| {
        Ok(Adapter { model: open(word)?.into_model(), scale: *scale })
    };
    let adapters: Vec<_> = options.adapters.iter().map(adapter).collect::<Result<_, Error>>()?;
    let executor = Executor::new(model, graph, options.arithmetic);
    let mut executor = executor.map_err(|error| error.in_file(word.as_ref()))?;
    if let Some(instructions) = options.instructions {
        executor = executor.with_instructions(instructions)?;
    }
    if options.no_repacking {
        executor = executor.with_repacking(0);
    }
    Ok(Arc::new(executor.with_adapters(&adapters)?))
}

/// The graph that a model is to be run by.
///
/// # Errors
/// `graph-missing` if the stored one is asked for and there is none; else as
/// [`gguf_models::build_graph`] and [`stored::stored`].
pub fn graph_of(model: &Model, source: GraphSource) -> Result<Graph, Error> {
    let metadata = model.metadata();
    let build = || gguf_models::build_graph(metadata, Executor::tensors(model));
    let of_file = || stored::stored(metadata, Limits::default());
    let known =
        |name: &str| gguf_models::registry::architectures_with_graph().any(|known| known == name);
    match source {
        GraphSource::Built => Ok(build()?),
        GraphSource::Stored => of_file()?.ok_or_else(|| {
            Finding::error("graph-missing", "the file holds no graph")
                .key(stored::GRAPH_KEY)
                .help("store one with `gguf graph --store`")
                .into()
        }),
        GraphSource::Auto if metadata.architecture().is_some_and(known) => Ok(build()?),
        GraphSource::Auto => match of_file()? {
            Some(graph) => Ok(graph),
            None => Ok(build()?),
        },
    }
}
