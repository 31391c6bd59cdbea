//! Memory of a context besides the weights, computed before anything is allocated.

use gguf_graph::{Graph, Op, OutputKind, Program, RowDim, Shape, ValueId};

use crate::liveness::last_uses;
use crate::options::ContextOptions;
use crate::sequence::{fixed_size, full_sizes};

/// Memory of a context in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextMemory {
    /// Each state of the graph, for all sequences, with full caches.
    pub states: Vec<u64>,
    /// Peak of the values of a batch. Scratch memory of threads, some hundred kilobytes each, is not included.
    pub values: u64,
}

impl ContextMemory {
    /// Returns the memory of a context that computes `kind` for the last token of each batch. The values of an
    /// encoder are not included, because its number of frames is unknown.
    pub fn new(graph: &Graph, options: ContextOptions, kind: OutputKind) -> Self {
        let (program, shapes) = graph.main();
        let requested: Vec<_> = graph.output(kind).into_iter().map(|(value, _)| value).collect();
        let rows = |rows| match rows {
            RowDim::Tokens => options.batch as u64,
            RowDim::Outputs | RowDim::Sequences => 1,
            RowDim::Frames { .. } => 0,
        };
        let values = peak(program, shapes, &last_uses(program, &requested), rows);
        Self { states: states(graph, options), values }
    }
}

impl ContextOptions {
    /// Returns the memory in bytes of full caches and all states with their lists; without those of an encoder, whose
    /// length is unknown before it runs.
    pub fn byte_len(&self, graph: &Graph) -> u64 {
        let fixed = fixed_size(graph).saturating_mul(self.sequences as u64);
        states(graph, *self).into_iter().fold(fixed, u64::saturating_add)
    }
}

/// Returns the size in bytes of each state, for all sequences.
fn states(graph: &Graph, options: ContextOptions) -> Vec<u64> {
    let sequences = options.sequences as u64;
    let sizes = full_sizes(graph, options);
    sizes.into_iter().map(|bytes| bytes.saturating_mul(sequences)).collect()
}

/// Returns the peak memory in bytes of the values of a program, given the number of rows of each kind.
pub(crate) fn peak(
    program: &Program,
    shapes: &[Shape],
    last_uses: &[Option<usize>],
    rows: impl Fn(RowDim) -> u64,
) -> u64 {
    let size = |value: usize| {
        let shape = shapes[value];
        u64::from(shape.width).saturating_mul(rows(shape.rows)).saturating_mul(4)
    };
    let (mut live, mut peak) = (0u64, 0);
    for (number, op) in program.ops.iter().enumerate().filter(|(n, _)| last_uses[*n].is_some()) {
        live = live.saturating_add(size(number));
        peak = peak.max(live);
        let mut dead: Vec<usize> = op.inputs().iter().map(|value| value.0 as usize).collect();
        dead.push(number);
        dead.sort_unstable();
        dead.dedup();
        let dead = dead.into_iter().filter(|value| last_uses[*value] == Some(number));
        live = live.saturating_sub(dead.map(size).fold(0, u64::saturating_add));
    }
    peak
}

/// Returns the maximum size in bytes of working copies of the inputs of an operation, such as quantized activations.
pub(crate) fn working_copies(
    program: &Program,
    shapes: &[Shape],
    rows: impl Fn(RowDim) -> u64,
) -> u64 {
    let size = |value: &ValueId| {
        let shape = shapes[value.0 as usize];
        u64::from(shape.width).saturating_mul(rows(shape.rows)).saturating_mul(4)
    };
    let copies = |op: &Op| op.inputs().iter().map(size).fold(0, u64::saturating_add);
    program.ops.iter().map(copies).max().unwrap_or(0)
}
