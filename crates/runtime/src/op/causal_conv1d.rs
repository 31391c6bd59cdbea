//! `causal_conv1d`

use gguf_graph::CausalConv1d;

use super::Kernel;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for CausalConv1d {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let weights = &run.executor.weights;
        let (weight, bias) = (weights.floats(self.weight), weights.optional(self.bias));
        let width = x.width;
        let kernel = weight.len() / width;
        let step = width * self.dilation as usize;
        for (sequence, rows) in &run.groups {
            // The last rows, oldest first.
            let history = sequences[*sequence].floats(self.state);
            for row in rows {
                let x = x.row(*row);
                let out = &mut out.data[row * width..(row + 1) * width];
                for (column, out) in out.iter_mut().enumerate() {
                    let weight = &weight[column * kernel..(column + 1) * kernel];
                    let inputs = history.iter().skip(column).step_by(step).chain([&x[column]]);
                    let sum: f32 = inputs.zip(weight).map(|(x, weight)| x * weight).sum();
                    *out = sum + bias.map_or(0.0, |bias| bias[column]);
                }
                push(history, x);
            }
        }
    }
}

/// Appends a row to a history and drops the oldest one.
fn push(history: &mut [f32], row: &[f32]) {
    if let Some(start) = history.len().checked_sub(row.len()) {
        history.copy_within(row.len().., 0);
        history[start..].copy_from_slice(row);
    }
}
