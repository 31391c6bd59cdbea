//! Search for the operation that first computes NaN or infinity.

use std::sync::{Mutex, PoisonError};

use gguf_graph::{Graph, Op, RowDim};
use gguf_runtime::{Observer, Value};

/// Observes a run and finds the first operation whose output contains NaN or infinity.
pub(crate) struct NanTracker {
    /// Position of the first token of the run.
    start: usize,
    found: Mutex<Option<NanOrigin>>,
}

/// An operation whose output contains NaN or infinity.
pub(crate) struct NanOrigin {
    /// Description with token, operation and tensor.
    pub what: String,
    /// Weight of the operation, or the last weight before it.
    pub tensor: Option<String>,
}

impl NanTracker {
    /// Creates a tracker for tokens from position `start` on.
    pub fn new(start: usize) -> Self {
        Self { start, found: Mutex::default() }
    }

    /// Returns the origin, if any.
    pub fn found(self) -> Option<NanOrigin> {
        self.found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for NanTracker {
    fn computed(&self, graph: &Graph, operation: usize, value: &Value) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_finite = |row: &usize| value.row(*row).iter().all(|number| number.is_finite());
        if found.is_none()
            && let Some(row) = (0..value.rows).find(|row| !is_finite(row))
        {
            *found = Some(self.describe(graph, operation, row));
        }
    }
}

impl NanTracker {
    fn describe(&self, graph: &Graph, operation: usize, row: usize) -> NanOrigin {
        let (program, shapes) = graph.main();
        let tensor = |op: &Op| {
            let weight = *op.weights().first()?;
            Some(graph.raw().weights[weight.0 as usize].name.clone())
        };
        let op = &program.ops[operation];
        let own = tensor(op);
        let relation = if own.is_some() { "with" } else { "after" };
        let tensor = own.or_else(|| program.ops[..operation].iter().rev().find_map(tensor));
        let mut what = format!("in the operation `{}`", op.name().replace('_', " "));
        if let Some(tensor) = &tensor {
            what.push_str(&format!(" {relation} {tensor}"));
        }
        if shapes[operation].rows == RowDim::Tokens {
            what = format!("at token {} {what}", self.start + row);
        }
        NanOrigin { what, tensor }
    }
}
