//! Computation graph with costs: `graph/2`.

use gguf_graph::{Graph, stored};
use serde_json::{Value as Json, json};

use gguf_runtime::graph_cost::{GraphCost, OpCost};
use gguf_runtime::machine::Machine;

/// Serializes a graph with the costs of its operations, and the limits of a measured machine.
pub fn graph(graph: &Graph, report: &GraphCost, machine: Option<Machine>) -> Json {
    let row = |row: &OpCost| {
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
        let (memory, float) = report.limits(machine);
        json!({
            "threads": machine.threads,
            "memory_bytes_per_second": machine.bytes_per_second,
            "float_multiply_adds_per_second": machine.multiply_adds_per_second,
            "memory_limit_runs_per_second": memory,
            "float_limit_runs_per_second": float,
        })
    });
    json!({
        "machine": machine,
        "architecture": graph.raw().architecture,
        "graph": stored::to_json(graph),
        "operations": report.ops.iter().map(row).collect::<Vec<_>>(),
        "bytes_read": report.bytes,
        "multiply_adds": report.multiply_adds,
        "kv_cache_elements_per_token": report.cache_width,
    })
}
