//! Convolutions over frames.

use super::each_row;
use crate::value::Value;

/// `weight` is `[kernel, width, width of the result]`.
pub(super) fn convolution(
    x: &Value,
    weight: &[f32],
    bias: Option<&[f32]>,
    kernel: usize,
    stride: usize,
    out: &mut Value,
) {
    let before = (kernel - 1) / 2;
    // The kernel of one output with neighbours of a channel beside each other would be read across
    // rows: turned once, it is read along them.
    let len = kernel * x.width;
    let mut turned = vec![0.0; weight.len()];
    for (turned, weight) in turned.chunks_exact_mut(len).zip(weight.chunks_exact(len)) {
        for channel in 0..x.width {
            for i in 0..kernel {
                turned[i * x.width + channel] = weight[channel * kernel + i];
            }
        }
    }
    each_row(out, |row, out| {
        let middle = row * stride;
        for (number, (out, kernels)) in out.iter_mut().zip(turned.chunks_exact(len)).enumerate() {
            let mut sum = bias.map_or(0.0, |bias| bias[number]);
            for (i, kernels) in kernels.chunks_exact(x.width).enumerate() {
                let Some(at) = (middle + i).checked_sub(before).filter(|at| *at < x.rows) else {
                    continue;
                };
                sum += dot(x.row(at), kernels);
            }
            *out = sum;
        }
    });
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
