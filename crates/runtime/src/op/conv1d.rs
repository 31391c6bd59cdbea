//! `conv1d`

use gguf_graph::Conv1d;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::Kernel;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

/// Frames of the output that share the reading of a kernel.
const FRAMES: usize = 8;

impl Kernel for Conv1d {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let weights = &run.executor.weights;
        let (weight, bias) = (weights.floats(self.weight), weights.optional(self.bias));
        let shape = &run.executor.graph.raw().weights[self.weight.0 as usize].shape;
        let kernel = shape.first().map_or(1, |extent| *extent as usize);
        let (stride, padding) = (self.stride as usize, (kernel - 1) / 2);
        let kernels = &transposed(weight, kernel, x.width);
        let arch = Arch::new();
        let width = out.width.max(1);
        out.data.par_chunks_mut(FRAMES * width).enumerate().for_each(|(number, out)| {
            let first = number * FRAMES;
            arch.dispatch(Frames { x, kernels, bias, kernel, stride, padding, first, width, out });
        });
    }
}

/// Some frames of the output.
struct Frames<'r> {
    x: &'r Value,
    kernels: &'r [f32],
    bias: Option<&'r [f32]>,
    kernel: usize,
    stride: usize,
    padding: usize,
    /// Number of the first frame.
    first: usize,
    /// Elements of a frame of the output.
    width: usize,
    out: &'r mut [f32],
}

impl WithSimd for Frames<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { x, kernels, bias, kernel, stride, padding, first, width, out } = self;
        for (number, kernels) in kernels.chunks_exact(kernel * x.width).enumerate() {
            for (frame, out) in out.chunks_exact_mut(width).enumerate() {
                let center = (first + frame) * stride;
                let mut sum = bias.map_or(0.0, |bias| bias[number]);
                for (i, kernels) in kernels.chunks_exact(x.width).enumerate() {
                    let frame = (center + i).checked_sub(padding).filter(|frame| *frame < x.rows);
                    let Some(frame) = frame else { continue };
                    sum += dot(x.row(frame), kernels);
                }
                out[number] = sum;
            }
        }
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

/// Returns the scalar product. The order of the sums is the same with every instruction set.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_chunks, a_rest) = a.as_chunks::<16>();
    let (b_chunks, b_rest) = b.as_chunks::<16>();
    let mut sums = [0.0f32; 16];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}
