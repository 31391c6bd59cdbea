//! The computation graph.

use gguf_graph::Workload;
use gguf_kit::report::graph_svg;
use gguf_kit::run::{GraphSource, model_graph};
use gguf_runtime::graph_cost::GraphCost;

use super::Request;
use crate::response::{ApiError, ApiResult, Response};

/// `GET graph`.
pub fn graph(request: &Request) -> ApiResult {
    let (model, query) = (request.model.model()?, request.query);
    let workload = Workload {
        tokens: query.parsed_or("tokens", 1)?,
        outputs: query.parsed_or("tokens", 1)?,
        past: query.parsed_or("before", 0)?,
        frames: query.parsed_or("frames", 3000)?,
    };
    /// Limit that keeps the costs within U64.
    const MAX: u64 = 1 << 32;
    if workload.tokens.max(workload.past).max(workload.frames) > MAX {
        return Err(ApiError::bad_request(format!("expected at most {MAX} tokens or frames")));
    }
    let graph = model_graph(model, GraphSource::Auto)?;
    let shown = gguf_kit::json::graph(&graph, &GraphCost::new(model, &graph, workload), None);
    Ok(Response::Json(gguf_kit::json::with_schema("graph/2", shown)))
}

/// `GET graph.svg`.
pub fn picture(request: &Request) -> ApiResult {
    let graph = model_graph(request.model.model()?, GraphSource::Auto)?;
    let picture = graph_svg(&graph);
    Ok(Response::Bytes("image/svg+xml", picture.into_bytes(), Vec::new()))
}
