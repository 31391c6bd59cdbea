//! The stored form of a graph: two keys of the file.
//!
//! `gguf_kit.graph.version` (UINT32) says which version of `docs/graph.md` the graph follows,
//! `gguf_kit.graph` (STRING) is the [`RawGraph`] as JSON.

use gguf::{Finding, Metadata};

use crate::graph::{Graph, Limits};
use crate::raw::RawGraph;

/// Version of the stored form.
pub const VERSION: u32 = 1;
/// Key of the version.
pub const VERSION_KEY: &str = "gguf_kit.graph.version";
/// Key of the graph.
pub const GRAPH_KEY: &str = "gguf_kit.graph";
/// Longest text that is read: the graph of a model of a hundred layers is a tenth of it.
const MAX_LEN: usize = 64 << 20;

/// Puts a graph into metadata, in the place of one that is there.
pub fn store(graph: &Graph, metadata: &mut Metadata) {
    metadata.set(VERSION_KEY, VERSION);
    metadata.set(GRAPH_KEY, to_text(graph).as_str());
}

/// A graph as the text that is stored.
pub fn to_text(graph: &Graph) -> String {
    // Maps with other keys than strings, which JSON lacks, do not occur.
    serde_json::to_string(graph.raw()).unwrap_or_default()
}

/// A graph as JSON.
pub fn to_json(graph: &Graph) -> serde_json::Value {
    serde_json::to_value(graph.raw()).unwrap_or_default()
}

/// The graph that metadata hold, checked; `None` if they hold none.
///
/// # Errors
/// `graph-version` if it follows another version, `graph-invalid` if it is no graph, else as
/// [`Graph::new`]; with the key.
pub fn stored(metadata: &Metadata, limits: Limits) -> Result<Option<Graph>, Finding> {
    let Some(value) = metadata.get(GRAPH_KEY) else { return Ok(None) };
    let version = metadata.u64(VERSION_KEY);
    if version != Some(u64::from(VERSION)) {
        let message = match version {
            Some(version) => format!("the stored graph is of version {version}"),
            None => "the stored graph has no version".to_owned(),
        };
        return Err(Finding::error("graph-version", message)
            .key(VERSION_KEY)
            .help(format!("this program reads version {VERSION}; store the graph anew")));
    }
    let invalid = |message: String| Finding::error("graph-invalid", message).key(GRAPH_KEY);
    let text = value.as_str().ok_or_else(|| invalid("the stored graph is no text".to_owned()))?;
    if text.len() > MAX_LEN {
        return Err(Finding::error("graph-limit", "the stored graph is too long").key(GRAPH_KEY));
    }
    let raw: RawGraph = serde_json::from_str(text)
        .map_err(|fault| invalid(format!("the stored graph: {fault}")))?;
    Graph::new(raw, limits).map(Some).map_err(|finding| finding.key(GRAPH_KEY))
}
