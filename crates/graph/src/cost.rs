//! Cost of operations: multiply-adds and the share of weights that is read.

use crate::id::{StateId, ValueId, WeightId};
use crate::tensor::{RowDim, Shape, State, Weight};

/// Amount of work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Tokens of the batch.
    pub tokens: u64,
    /// Tokens whose output is requested.
    pub outputs: u64,
    /// Tokens in the KV cache before the batch.
    pub past: u64,
    /// Frames that the encoder reads.
    pub frames: u64,
}

impl Workload {
    /// Returns the number of rows of a value.
    pub(crate) fn rows(self, rows: RowDim) -> u64 {
        match rows {
            RowDim::Tokens => self.tokens,
            RowDim::Outputs => self.outputs,
            RowDim::Sequences => 1,
            RowDim::Frames { stride } => self.frames.div_ceil(stride.into()),
        }
    }
}

/// Cost of one operation under a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Rows of the output.
    pub rows: u64,
    /// Multiply-adds; for element-wise operations, the number of elements.
    pub multiply_adds: u64,
    /// Weights of the operation, and the share of each that is read.
    pub weights: Vec<(WeightId, f64)>,
}

/// Arithmetic and memory traffic of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Multiply-adds.
    pub multiply_adds: u64,
    /// Share of the weights that is read, from 0 to 1.
    pub weight_share: f64,
}

impl Work {
    /// No arithmetic: data movement.
    pub(crate) const NONE: Self = Self { multiply_adds: 0, weight_share: 1.0 };

    /// Returns the work of operations that read their weights whole.
    pub(crate) fn dense(multiply_adds: u64) -> Self {
        Self { multiply_adds, weight_share: 1.0 }
    }
}

/// The parts of a graph that the cost of an operation depends on.
#[derive(Clone, Copy, Debug)]
pub struct CostScope<'g> {
    /// Weights of the graph.
    pub weights: &'g [Weight],
    /// States of the graph.
    pub states: &'g [State],
    /// Shapes of all values of the program.
    pub shapes: &'g [Shape],
    /// Shape of the output.
    pub output: Shape,
    /// Rows of the output.
    pub rows: u64,
    /// Amount of work of the run.
    pub workload: Workload,
}

impl CostScope<'_> {
    /// Returns the number of elements of a weight; 0 if there is none.
    pub(crate) fn elements(&self, id: WeightId) -> u64 {
        self.weights.get(id.0 as usize).map_or(0, Weight::elements)
    }

    /// Returns an extent of a weight.
    pub(crate) fn extent(&self, id: WeightId, axis: usize) -> u64 {
        let weight = self.weights.get(id.0 as usize);
        weight.and_then(|weight| weight.shape.get(axis)).copied().unwrap_or(1)
    }

    /// Returns the width of a value; 0 if there is none.
    pub(crate) fn width(&self, id: ValueId) -> u64 {
        self.shapes.get(id.0 as usize).map_or(0, |shape| u64::from(shape.width))
    }

    /// Returns the number of elements of the output.
    pub(crate) fn elementwise(&self) -> u64 {
        self.rows.saturating_mul(self.output.width.into())
    }

    /// Returns the work of multiplying each row by all elements of a weight.
    pub(crate) fn dense(&self, weight: WeightId) -> Work {
        Work::dense(self.rows.saturating_mul(self.elements(weight)))
    }

    /// Returns the tokens per row of a KV cache.
    pub(crate) fn block(&self, id: StateId) -> u64 {
        match self.states.get(id.0 as usize) {
            Some(State::KvCache { block, .. }) => u64::from(*block).max(1),
            _ => 1,
        }
    }
}
