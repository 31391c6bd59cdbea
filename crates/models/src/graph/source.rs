//! Choice between the graph of the architecture and the graph that is stored in the file.

use gguf::{Error, Finding, Metadata, TensorInfo};
use gguf_graph::{Graph, Limits, stored};

use crate::registry;

/// Origin of the graph that a model runs by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphSource {
    /// Builds the graph if the architecture is known, and else reads the stored one.
    #[default]
    Auto,
    /// Builds the graph from the architecture.
    Built,
    /// Reads the graph that is stored in the file.
    Stored,
}

/// Returns the computation graph of a model with these tensors.
///
/// # Errors
/// `graph-missing` if `source` is [`GraphSource::Stored`] and the file has no graph; as [`build_graph`](super::build) and
/// [`stored::stored`].
pub fn model_graph<'t>(
    metadata: &Metadata,
    tensors: impl IntoIterator<Item = &'t TensorInfo>,
    source: GraphSource,
) -> Result<Graph, Error> {
    let stored_graph = || stored::stored(metadata, Limits::default());
    let is_known = |name: &str| registry::architectures_with_graph().any(|known| known == name);
    let stored = match source {
        GraphSource::Built => None,
        GraphSource::Stored => {
            let graph = stored_graph()?.ok_or_else(|| {
                Finding::error("graph-missing", "the file has no stored graph")
                    .key(stored::GRAPH_KEY)
                    .help("store one with `gguf graph --store`")
            })?;
            Some(graph)
        }
        GraphSource::Auto if metadata.architecture().is_some_and(is_known) => None,
        GraphSource::Auto => stored_graph()?,
    };
    match stored {
        Some(graph) => Ok(graph),
        None => Ok(super::build(metadata, tensors)?),
    }
}
