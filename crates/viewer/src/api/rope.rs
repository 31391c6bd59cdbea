//! RoPE of query and key projections.

use std::collections::HashMap;

use gguf_graph::op::Op;
use gguf_graph::{Program, RawGraph};
use gguf_kit::run::{GraphSource, model_graph};
use serde_json::{Value as Json, json};

use super::Request;
use crate::response::{ApiResult, Response};

/// `GET rope`.
pub fn rope(request: &Request) -> ApiResult {
    let graph = model_graph(request.model.model()?, GraphSource::Auto)?;
    let raw = graph.raw();
    let programs = raw.encoder.iter().chain([&raw.main]);
    let projections = programs.flat_map(|program| projections(raw, program)).collect::<Json>();
    Ok(Response::Json(json!({ "projections": projections })))
}

/// Returns the matrices of a program whose products are rotated, possibly after a bias or a norm per head.
fn projections(graph: &RawGraph, program: &Program) -> Vec<Json> {
    // The matrix that each value is a product of.
    let mut matrices: HashMap<usize, usize> = HashMap::new();
    let mut found = Vec::new();
    for (number, op) in program.ops.iter().enumerate() {
        match op {
            Op::Matmul(matmul) => {
                matrices.insert(number, matmul.weight.0 as usize);
            }
            Op::Bias(_)
            | Op::RmsNorm(_)
            | Op::LayerNorm(_)
            | Op::L2Norm(_)
            | Op::MulWeight(_)
            | Op::Scale(_) => {
                let input = op.inputs().first().map(|input| input.0 as usize);
                if let Some(matrix) = input.and_then(|input| matrices.get(&input)).copied() {
                    matrices.insert(number, matrix);
                }
            }
            Op::Rope(rope) => {
                let matrix = matrices.get(&(rope.x.0 as usize));
                let Some(weight) = matrix.and_then(|matrix| graph.weights.get(*matrix)) else {
                    continue;
                };
                let parameters = &rope.parameters;
                found.push(json!({
                    "tensor": weight.name,
                    "heads": rope.heads,
                    "layout": parameters.layout,
                    "start": parameters.start,
                    "dimensions": parameters.dimensions,
                    "freq_base": parameters.freq_base,
                }));
            }
            _ => {}
        }
    }
    found
}
