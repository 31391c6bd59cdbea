//! `conv1d`

use gguf_graph::Conv1d;

use super::Kernel;
use super::parallel::each_row;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Conv1d {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let weights = &run.executor.weights;
        let (weight, bias) = (weights.floats(self.weight), weights.optional(self.bias));
        let shape = &run.executor.graph.raw().weights[self.weight.0 as usize].shape;
        let kernel = shape.first().map_or(1, |extent| *extent as usize);
        let (stride, padding) = (self.stride as usize, (kernel - 1) / 2);
        let kernels = transposed(weight, kernel, x.width);
        let len = kernel * x.width;
        each_row(out, |row, out| {
            let center = row * stride;
            for (number, (out, kernels)) in out.iter_mut().zip(kernels.chunks_exact(len)).enumerate()
            {
                let mut sum = bias.map_or(0.0, |bias| bias[number]);
                for (i, kernels) in kernels.chunks_exact(x.width).enumerate() {
                    let frame = (center + i).checked_sub(padding).filter(|frame| *frame < x.rows);
                    let Some(frame) = frame else { continue };
                    sum += dot(x.row(frame), kernels);
                }
                *out = sum;
            }
        });
    }
}

/// Returns kernels `[kernel, width, n]` as `[width, kernel, n]`, so that they are read along the rows of the input.
fn transposed(weight: &[f32], kernel: usize, width: usize) -> Vec<f32> {
    let len = kernel * width;
    let mut transposed = vec![0.0; weight.len()];
    for (transposed, weight) in transposed.chunks_exact_mut(len).zip(weight.chunks_exact(len)) {
        for channel in 0..width {
            for i in 0..kernel {
                transposed[i * width + channel] = weight[channel * kernel + i];
            }
        }
    }
    transposed
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<8>();
    let (b_chunks, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0f32; 8];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}
