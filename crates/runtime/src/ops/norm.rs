//! Norms.

use gguf_graph::NormKind;

use super::each_row;
use crate::value::Value;

pub(super) fn norm(
    x: &Value,
    kind: NormKind,
    epsilon: f32,
    groups: u32,
    weight: Option<&[f32]>,
    bias: Option<&[f32]>,
    out: &mut Value,
) {
    let len = x.width / groups as usize;
    each_row(out, |row, out| {
        let parts = x.row(row).chunks_exact(len).zip(out.chunks_exact_mut(len));
        for (part, (x, out)) in parts.enumerate() {
            let (mean, factor) = statistics(kind, epsilon, x);
            for (out, x) in out.iter_mut().zip(x) {
                *out = (x - mean) * factor;
            }
            let of_part = |weight: &'_ [f32]| part * len % weight.len();
            if let Some(weight) = weight {
                let weight = &weight[of_part(weight)..];
                out.iter_mut().zip(weight).for_each(|(out, weight)| *out *= weight);
            }
            if let Some(bias) = bias {
                let bias = &bias[of_part(bias)..];
                out.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
            }
        }
    });
}

/// What is subtracted, and what is multiplied by then.
fn statistics(kind: NormKind, epsilon: f32, x: &[f32]) -> (f32, f32) {
    let len = x.len() as f32;
    match kind {
        NormKind::Layer => {
            let mean = sum(x, |x| x) / len;
            let variance = sum(x, |x| (x - mean) * (x - mean)) / len;
            (mean, 1.0 / (variance + epsilon).sqrt())
        }
        NormKind::Rms => (0.0, 1.0 / (sum(x, |x| x * x) / len + epsilon).sqrt()),
        NormKind::L2 => (0.0, 1.0 / sum(x, |x| x * x).sqrt().max(epsilon)),
    }
}

/// A sum in an order that depends on nothing but the length.
fn sum(x: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = x.as_chunks::<16>();
    let mut sums = [0.0f32; 16];
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += of(*x);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|x| of(*x)).sum::<f32>()
}
