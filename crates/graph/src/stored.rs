//! The stored form of a graph: two metadata keys.
//!
//! `gguf_kit.graph.version` (UINT32) is the version of `docs/graph.md` that the graph follows,
//! `gguf_kit.graph` (STRING) is the [`RawGraph`] as JSON.

use gguf::{Finding, Metadata};

use crate::graph::{Graph, Limits};
use crate::raw::RawGraph;

/// Version of the stored form.
pub const VERSION: u32 = 2;
/// Metadata key of the version.
pub const VERSION_KEY: &str = "gguf_kit.graph.version";
/// Metadata key of the graph.
pub const GRAPH_KEY: &str = "gguf_kit.graph";
/// Maximum length of the JSON text: ten times that of a model with a hundred layers.
const MAX_LEN: usize = 64 << 20;

/// Stores a graph in metadata, replacing an earlier one.
pub fn store(graph: &Graph, metadata: &mut Metadata) {
    metadata.set(VERSION_KEY, VERSION);
    metadata.set(GRAPH_KEY, to_text(graph).as_str());
}

/// Removes a stored graph.
pub fn remove(metadata: &mut Metadata) {
    metadata.remove(GRAPH_KEY);
    metadata.remove(VERSION_KEY);
}

/// Returns a graph as the text that is stored.
pub fn to_text(graph: &Graph) -> String {
    // Serialization fails only for maps whose keys are not strings, and a graph has no maps.
    serde_json::to_string(graph.raw()).unwrap_or_default()
}

/// Returns a graph as JSON.
pub fn to_json(graph: &Graph) -> serde_json::Value {
    serde_json::to_value(graph.raw()).unwrap_or_default()
}

/// Returns the checked graph that metadata hold; `None` if they hold none.
///
/// # Errors
/// `graph-version` if the graph has another version, `graph-invalid` if it is not a graph, else the errors of
/// [`Graph::new`]; each with the key.
pub fn stored(metadata: &Metadata, limits: Limits) -> Result<Option<Graph>, Finding> {
    let Some(value) = metadata.get(GRAPH_KEY) else { return Ok(None) };
    let version = metadata.u64(VERSION_KEY);
    if version != Some(u64::from(VERSION)) {
        return Err(other_version(version));
    }
    let invalid = |message: String| Finding::error("graph-invalid", message).key(GRAPH_KEY);
    let text =
        value.as_str().ok_or_else(|| invalid("the stored graph is not a string".to_owned()))?;
    if text.len() > MAX_LEN {
        let message =
            format!("the stored graph has {} bytes; expected at most {MAX_LEN}", text.len());
        return Err(Finding::error("graph-limit", message).key(GRAPH_KEY));
    }
    let raw: RawGraph = serde_json::from_str(text)
        .map_err(|fault| invalid(format!("the stored graph is invalid: {fault}")))?;
    Graph::new(raw, limits).map(Some).map_err(|finding| finding.key(GRAPH_KEY))
}

fn other_version(version: Option<u64>) -> Finding {
    let message = match version {
        Some(version) => format!("the stored graph has version {version}; expected {VERSION}"),
        None => format!("the stored graph has no version; expected {VERSION}"),
    };
    let finding = Finding::error("graph-version", message).key(VERSION_KEY);
    if version.is_some_and(|version| version > u64::from(VERSION)) {
        return finding.help("a newer version of this program reads it");
    }
    finding.help("rebuild it from the architecture: `gguf graph MODEL --graph built --store`")
}
