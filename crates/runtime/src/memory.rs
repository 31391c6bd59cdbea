//! Memory that a run takes beside the weights, known before anything is allocated.

use gguf_graph::{Graph, OutputKind, Program, RowDim, Shape};

use crate::context::ContextOptions;
use crate::run::last_use;
use crate::state::full_lens;

/// Bytes that caches, states and the values of a batch take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Of each state of the graph, in its order: full caches, of all sequences together.
    pub states: Vec<u64>,
    /// Values of a batch, at most at a time. What threads keep for products and for attention is beside
    /// them, some hundred kilobytes each.
    pub values: u64,
}

impl Memory {
    /// What a graph takes in a context of these options, where the result `kind` is asked of the last
    /// token of each batch. Values of an encoder are not counted: how many frames it gets is not known.
    pub fn of(graph: &Graph, options: ContextOptions, kind: OutputKind) -> Self {
        let (program, shapes) = graph.main();
        let wanted: Vec<_> = graph.output(kind).into_iter().map(|(value, _)| value).collect();
        let rows = |rows| match rows {
            RowDim::Tokens => options.batch as u64,
            RowDim::Outputs | RowDim::Sequences => 1,
            RowDim::Frames { .. } => 0,
        };
        let values = values(program, shapes, &last_use(program, &wanted), rows);
        Self { states: states(graph, options), values }
    }
}

/// Bytes of full caches and of all states, one by one.
pub(crate) fn states(graph: &Graph, options: ContextOptions) -> Vec<u64> {
    let sequences = options.sequences as u64;
    let one = full_lens(graph, options.cache_type, options.tokens);
    one.into_iter().map(|bytes| bytes.saturating_mul(sequences)).collect()
}

/// Bytes that the values of a program take at most at a time, if so many rows are made of each kind.
pub(crate) fn values(
    program: &Program,
    shapes: &[Shape],
    last_use: &[Option<usize>],
    rows: impl Fn(RowDim) -> u64,
) -> u64 {
    let size = |value: usize| {
        let shape = shapes[value];
        4 * u64::from(shape.width).saturating_mul(rows(shape.rows))
    };
    let (mut live, mut peak) = (0u64, 0);
    for (number, op) in program.ops.iter().enumerate().filter(|(n, _)| last_use[*n].is_some()) {
        live = live.saturating_add(size(number));
        peak = peak.max(live);
        let mut ended: Vec<usize> = op.inputs().iter().map(|value| value.0 as usize).collect();
        ended.push(number);
        ended.sort_unstable();
        ended.dedup();
        let ended = ended.into_iter().filter(|value| last_use[*value] == Some(number));
        live = live.saturating_sub(ended.map(size).sum());
    }
    peak
}
