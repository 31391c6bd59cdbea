//! The computation graph.

use gguf_graph::Load;
use gguf_kit::run::graph::{report, to_svg};
use gguf_kit::run::{GraphSource, graph_of};

use super::Request;
use crate::response::{ApiError, ApiResult, Response};

/// `GET graph`.
pub fn graph(request: &Request) -> ApiResult {
    let (model, query) = (request.model.model()?, request.query);
    let load = Load {
        tokens: query.parsed_or("tokens", 1)?,
        outputs: query.parsed_or("tokens", 1)?,
        before: query.parsed_or("before", 0)?,
        frames: query.parsed_or("frames", 3000)?,
    };
    /// Limit that keeps the costs within U64.
    const MAX: u64 = 1 << 32;
    if load.tokens.max(load.before).max(load.frames) > MAX {
        return Err(ApiError::bad_request(format!("expected at most {MAX} tokens or frames")));
    }
    let graph = graph_of(model, GraphSource::Auto)?;
    let shown = gguf_kit::json::graph(&graph, &report(model, &graph, load), None);
    Ok(Response::Json(gguf_kit::json::with_schema("graph/1", shown)))
}

/// `GET graph.svg`.
pub fn picture(request: &Request) -> ApiResult {
    let graph = graph_of(request.model.model()?, GraphSource::Auto)?;
    let picture = to_svg(&graph)?;
    Ok(Response::Bytes("image/svg+xml", picture.into_bytes(), Vec::new()))
}
