//! RoPE of query and key projections.

use std::collections::HashMap;

use gguf_graph::op::Op;
use gguf_graph::{Program, RawGraph};
use gguf_kit::run::{GraphSource, model_graph};
use serde_json::{Value as Json, json};

use super::Request;
use crate::response::{ApiResult, Response};

/// `GET rope`. A model without a computation graph has none that are known.
pub fn rope(request: &Request) -> ApiResult {
    let graph = model_graph(request.model.model()?, GraphSource::Auto).ok();
    let raw = graph.as_ref().map(|graph| graph.raw());
    let found = raw.into_iter().flat_map(|raw| {
        let programs = raw.encoder.iter().chain([&raw.main]);
        programs.flat_map(|program| projections(raw, program))
    });
    Ok(Response::Json(json!({ "projections": found.collect::<Json>() })))
}

/// Rows of a matrix whose products a value has.
#[derive(Clone, Copy)]
struct Rows {
    matrix: usize,
    /// First row, and number of rows.
    first: u64,
    len: u64,
    /// First dimension of each head.
    start: u32,
}

/// Returns the matrices of a program whose products are rotated: whole, a part of fused projections, or a part of each
/// head; possibly after a bias or a norm per head.
fn projections(graph: &RawGraph, program: &Program) -> Vec<Json> {
    let mut products: HashMap<usize, Rows> = HashMap::new();
    let mut found = Vec::new();
    for (number, op) in program.ops.iter().enumerate() {
        let input = op.inputs().first().map(|input| input.0 as usize);
        let rows = input.and_then(|input| products.get(&input)).copied();
        match (op, rows) {
            (Op::Matmul(matmul), _) => {
                let matrix = matmul.weight.0 as usize;
                let len = graph.weights.get(matrix).and_then(|weight| weight.shape.get(1));
                let rows = Rows { matrix, first: 0, len: len.copied().unwrap_or(1), start: 0 };
                products.insert(number, rows);
            }
            (
                Op::Bias(_)
                | Op::Clamp(_)
                | Op::RmsNorm(_)
                | Op::LayerNorm(_)
                | Op::L2Norm(_)
                | Op::MulWeight(_)
                | Op::Scale(_),
                Some(rows),
            ) => {
                products.insert(number, rows);
            }
            (Op::Slice(slice), Some(rows)) => {
                let part = match slice.groups {
                    1 => Rows {
                        first: rows.first + u64::from(slice.start),
                        len: slice.len.into(),
                        ..rows
                    },
                    _ => Rows { start: rows.start.saturating_add(slice.start), ..rows },
                };
                products.insert(number, part);
            }
            (Op::Rope(rope), Some(rows)) => {
                let Some(weight) = graph.weights.get(rows.matrix) else { continue };
                let parameters = &rope.parameters;
                found.push(json!({
                    "tensor": weight.name,
                    "first_row": rows.first,
                    "rows": rows.len,
                    "heads": rope.heads,
                    "layout": parameters.layout,
                    "start": rows.start.saturating_add(parameters.start),
                    "dimensions": parameters.dimensions,
                    "freq_base": parameters.freq_base,
                }));
            }
            _ => {}
        }
    }
    found
}
