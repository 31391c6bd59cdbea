//! What a model computes, and what it costs: `graph/1`.

use gguf_graph::{Graph, stored};
use serde_json::{Value as Json, json};

use crate::run::bench::Machine;
use crate::run::graph::{Report, Row};

/// A graph with what its operations cost, and what a machine that was measured allows.
pub fn graph(graph: &Graph, report: &Report, machine: Option<Machine>) -> Json {
    let row = |row: &Row| {
        json!({
            "program": if row.encoder { "encoder" } else { "main" },
            "number": row.number,
            "op": row.op,
            "shape": row.shape.to_string(),
            "weights": row.weights,
            "bytes_read": row.bytes,
            "multiply_adds": row.multiply_adds,
        })
    };
    let machine = machine.map(|machine| {
        let (memory, arithmetic) = report.limits(machine);
        json!({
            "threads": machine.threads,
            "memory_bytes_per_second": machine.bytes_per_second,
            "float_multiply_adds_per_second": machine.multiply_adds_per_second,
            "runs_per_second_by_memory": memory,
            "runs_per_second_by_arithmetic": arithmetic,
        })
    });
    json!({
        "machine": machine,
        "architecture": graph.raw().architecture,
        "graph": stored::to_json(graph),
        "operations": report.rows.iter().map(row).collect::<Vec<_>>(),
        "bytes_read": report.bytes,
        "multiply_adds": report.multiply_adds,
        "cache_numbers_per_token": report.cache_width,
    })
}
