//! Where something that is no number begins.

use std::sync::{Mutex, PoisonError};

use gguf_graph::{Graph, Op, Rows};
use gguf_runtime::{Observer, Value};

/// Looks for the first operation that makes NaN or infinity.
pub(crate) struct Origin {
    /// The place of the first token that is read.
    start: usize,
    found: Mutex<Option<Found>>,
}

/// An operation that makes NaN or infinity.
pub(crate) struct Found {
    /// At which token, in which operation, with which tensor.
    pub what: String,
    /// The tensor that it works with, or the last one before it.
    pub tensor: Option<String>,
}

impl Origin {
    /// While tokens from this place on are read.
    pub fn new(start: usize) -> Self {
        Self { start, found: Mutex::default() }
    }

    /// What was found, if there was anything.
    pub fn found(self) -> Option<Found> {
        self.found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Origin {
    fn made(&self, graph: &Graph, operation: usize, value: &Value) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_finite = |row: &usize| value.row(*row).iter().all(|number| number.is_finite());
        if found.is_none()
            && let Some(row) = (0..value.rows).find(|row| !is_finite(row))
        {
            *found = Some(self.describe(graph, operation, row));
        }
    }
}

impl Origin {
    fn describe(&self, graph: &Graph, operation: usize, row: usize) -> Found {
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
        if shapes[operation].rows == Rows::Tokens {
            what = format!("at token {} {what}", self.start + row);
        }
        Found { what, tensor }
    }
}
