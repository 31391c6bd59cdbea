//! Who looks on while a model runs.

use gguf_graph::Graph;

use crate::value::Value;

/// Sees what enters each product with a tensor of weights, and what operations make.
pub trait Observer: Sync {
    /// `x` is multiplied with a tensor: with all of it, where a tensor of several matrices has one for
    /// each part of a row (heads of latent attention); where these matrices stand one below the other as one, the
    /// parts are rows; or, with `expert`, these rows with one matrix
    /// of several: its number, and how many there are.
    fn product(&self, tensor: &str, expert: Option<(usize, usize)>, x: &Value) {
        let _ = (tensor, expert, x);
    }

    /// The operation of this number in the main program of the graph has made a value.
    fn made(&self, graph: &Graph, operation: usize, value: &Value) {
        let _ = (graph, operation, value);
    }
}
