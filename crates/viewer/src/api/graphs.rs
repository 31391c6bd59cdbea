//! What a model computes.

use gguf_graph::Load;
use gguf_kit::run::graph::{report, to_svg};
use gguf_kit::run::{GraphSource, graph_of};

use super::Question;
use crate::answer::{Answer, Answered, Failure};

/// `GET graph`.
pub fn graph(question: &Question) -> Answered {
    let (model, ask) = (question.model.model()?, question.ask);
    let load = Load {
        tokens: ask.or("tokens", 1)?,
        outputs: ask.or("tokens", 1)?,
        before: ask.or("before", 0)?,
        frames: ask.or("frames", 3000)?,
    };
    /// What no model has seen: costs of more do not fit their numbers.
    const MOST: u64 = 1 << 32;
    if load.tokens.max(load.before).max(load.frames) > MOST {
        return Err(Failure::request(format!("at most {MOST} tokens or frames")));
    }
    let graph = graph_of(model, GraphSource::Auto)?;
    let shown = gguf_kit::json::graph(&graph, &report(model, &graph, load), None);
    Ok(Answer::Json(gguf_kit::json::with_schema("graph/1", shown)))
}

/// `GET graph.svg`.
pub fn picture(question: &Question) -> Answered {
    let graph = graph_of(question.model.model()?, GraphSource::Auto)?;
    let picture = to_svg(&graph)?;
    Ok(Answer::Bytes("image/svg+xml", picture.into_bytes(), Vec::new()))
}
