//! Code shared by `LayerNorm`, `RmsNorm` and `L2Norm`.

use gguf_graph::WeightId;

use super::parallel::each_row;
use crate::run::Run;
use crate::value::Value;

/// Normalizes each group of each row: subtracts the first and multiplies by the second of the numbers that
/// `statistics` returns for it, then applies weight and bias.
pub(super) fn norm(
    run: &Run<'_>,
    x: &Value,
    groups: u32,
    [weight, bias]: [Option<WeightId>; 2],
    statistics: impl Fn(&[f32]) -> (f32, f32) + Sync,
    out: &mut Value,
) {
    let weights = &run.executor.weights;
    let (weight, bias) = (weights.optional(weight), weights.optional(bias));
    let len = x.width / groups as usize;
    each_row(out, |row, out| {
        let groups = x.row(row).chunks_exact(len).zip(out.chunks_exact_mut(len));
        for (group, (x, out)) in groups.enumerate() {
            let (mean, factor) = statistics(x);
            for (out, x) in out.iter_mut().zip(x) {
                *out = (x - mean) * factor;
            }
            let start = |weight: &'_ [f32]| group * len % weight.len();
            if let Some(weight) = weight {
                let weight = &weight[start(weight)..];
                out.iter_mut().zip(weight).for_each(|(out, weight)| *out *= weight);
            }
            if let Some(bias) = bias {
                let bias = &bias[start(bias)..];
                out.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
            }
        }
    });
}

/// Returns the sum of a function of all elements, in an order that depends only on the length.
pub(super) fn sum(x: &[f32], function: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = x.as_chunks::<16>();
    let mut sums = [0.0f32; 16];
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += function(*x);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|x| function(*x)).sum::<f32>()
}
