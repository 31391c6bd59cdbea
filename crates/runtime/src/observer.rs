//! Observation of a running model.

use gguf_graph::Graph;

use crate::value::Value;

/// Callbacks for the inputs of matrix multiplications and for computed values.
pub trait Observer: Sync {
    /// Called before `x` is multiplied by a tensor of weights. With `expert`, the rows are multiplied by one matrix of
    /// the tensor: its number and the number of matrices. For a tensor with a matrix per head, `x` has all heads in
    /// each row if the matrices are separate, and one row per head if they are stacked.
    fn matmul(&self, tensor: &str, expert: Option<(usize, usize)>, x: &Value) {
        let _ = (tensor, expert, x);
    }

    /// Called after an operation of the main program computed its value.
    fn computed(&self, graph: &Graph, operation: usize, value: &Value) {
        let _ = (graph, operation, value);
    }
}
