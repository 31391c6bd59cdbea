//! Memory traffic and arithmetic of each operation of a graph, with the weights of a model.

use gguf_graph::{Cost, Graph, Op, Shape, Workload};
use gguf_store::Model;

use crate::machine::Machine;

/// Cost of one operation under a workload.
#[derive(Clone, Debug)]
pub struct OpCost {
    /// Whether the operation belongs to the encoder.
    pub encoder: bool,
    /// Index of the operation in its program.
    pub number: usize,
    /// Name of the operation in the stored form.
    pub op: &'static str,
    /// Shape of the output.
    pub shape: Shape,
    /// Names of the weights.
    pub weights: Vec<String>,
    /// Bytes of weights that the operation reads.
    pub bytes: u64,
    /// Number of multiply-adds.
    pub multiply_adds: u64,
}

/// Cost of a graph under a workload.
#[derive(Clone, Debug)]
pub struct GraphCost {
    /// Costs of the operations, those of the encoder first.
    pub ops: Vec<OpCost>,
    /// Total bytes of weights read.
    pub bytes: u64,
    /// Total number of multiply-adds.
    pub multiply_adds: u64,
    /// KV cache elements per token.
    pub cache_width: u64,
}

impl GraphCost {
    /// Computes the cost of `graph` with the weights of `model`.
    pub fn new(model: &Model, graph: &Graph, workload: Workload) -> Self {
        let index = model.index();
        let byte_len =
            |name: &str| index.get(name).and_then(|tensor| tensor.info.byte_len()).unwrap_or(0);
        let mut rows = Vec::new();
        let mut add = |encoder: bool, ops: &[Op], shapes: &[Shape], costs: Vec<Cost>| {
            for (number, ((op, shape), cost)) in ops.iter().zip(shapes).zip(costs).enumerate() {
                let mut row = OpCost {
                    encoder,
                    number,
                    op: op.name(),
                    shape: *shape,
                    weights: Vec::new(),
                    bytes: 0,
                    multiply_adds: cost.multiply_adds,
                };
                for (id, share) in cost.weights {
                    let Some(weight) = graph.raw().weights.get(id.0 as usize) else { continue };
                    row.bytes += (byte_len(&weight.name) as f64 * share) as u64;
                    row.weights.push(weight.name.clone());
                }
                rows.push(row);
            }
        };
        if let Some((program, shapes)) = graph.encoder() {
            add(true, &program.ops, shapes, graph.encoder_costs(workload));
        }
        let (program, shapes) = graph.main();
        add(false, &program.ops, shapes, graph.costs(workload));
        let sum = |field: fn(&OpCost) -> u64| rows.iter().map(field).fold(0, u64::saturating_add);
        Self {
            bytes: sum(|row| row.bytes),
            multiply_adds: sum(|row| row.multiply_adds),
            cache_width: graph.cache_width(),
            ops: rows,
        }
    }

    /// Returns the maximum runs per second by memory bandwidth, and by F32 arithmetic. The lower one is the limit of
    /// the machine.
    pub fn limits(&self, machine: Machine) -> (f64, f64) {
        let per_second = |rate: f64, cost: u64| rate / (cost as f64).max(1.0);
        (
            per_second(machine.bytes_per_second, self.bytes),
            per_second(machine.multiply_adds_per_second, self.multiply_adds),
        )
    }
}
