//! Rotary position embedding.

use gguf_graph::{FreqFactors, RopeLayout, RopeParameters, RopeScaling};

use super::each_row;
use crate::run::Run;
use crate::value::Value;
use crate::weight::Weights;

pub(super) fn rotate(
    run: &Run<'_>,
    x: &Value,
    heads: u32,
    rotation: &RopeParameters,
    out: &mut Value,
) {
    let frequencies = frequencies(rotation, &run.executor.weights, run.context_len);
    let len = x.width / heads as usize;
    let (start, half) = (rotation.start as usize, frequencies.len());
    let block = rotation.block as usize;
    let sign = if rotation.inverse { -1.0 } else { 1.0 };
    each_row(out, |row, out| {
        out.copy_from_slice(x.row(row));
        let position = (run.positions[row] / block * block) as f32;
        let turns: Vec<(f32, f32)> = frequencies
            .iter()
            .map(|frequency| {
                let (sin, cos) = (position * frequency).sin_cos();
                (sign * sin * rotation.attention_factor, cos * rotation.attention_factor)
            })
            .collect();
        for head in out.chunks_exact_mut(len) {
            let head = &mut head[start..start + 2 * half];
            for (i, (sin, cos)) in turns.iter().enumerate() {
                let (a, b) = match rotation.layout {
                    RopeLayout::Interleaved => (2 * i, 2 * i + 1),
                    RopeLayout::Neox => (i, i + half),
                };
                let (x, y) = (head[a], head[b]);
                head[a] = x * cos - y * sin;
                head[b] = x * sin + y * cos;
            }
        }
    });
}

/// The angle of each pair per position.
fn frequencies(rotation: &RopeParameters, weights: &Weights, context_len: usize) -> Vec<f32> {
    let RopeParameters {
        dimensions: count,
        freq_base: base,
        scaling: stretch,
        freq_factors: factors,
        ..
    } = rotation;
    let factors = match *factors {
        FreqFactors::None => None,
        FreqFactors::Fixed(weight) => Some(weights.floats(weight)),
        FreqFactors::LongRope { short, long, original_context: original } => {
            let id = if context_len > original as usize { long } else { short };
            Some(weights.floats(id))
        }
    };
    let of_pair = |i: u32| {
        let exponent = -f64::from(2 * i) / f64::from(*count);
        let factor = factors.map_or(1.0, |factors| factors[i as usize]);
        let frequency = f64::from(*base).powf(exponent) / f64::from(factor);
        (frequency * stretched(*stretch, i, *count, *base)) as f32
    };
    (0..count / 2).map(of_pair).collect()
}

/// What the frequency of a pair is multiplied by.
fn stretched(stretch: RopeScaling, pair: u32, count: u32, base: f32) -> f64 {
    match stretch {
        RopeScaling::None => 1.0,
        RopeScaling::Linear(factor) => 1.0 / f64::from(factor),
        RopeScaling::Yarn {
            factor,
            original_context: original,
            beta_fast,
            beta_slow,
            truncate: rounded,
        } => {
            let pair_of = |turns: f32| {
                let wavelength = f64::from(original) / (f64::from(turns) * std::f64::consts::TAU);
                f64::from(count) * wavelength.ln() / (2.0 * f64::from(base).ln())
            };
            let last = f64::from(count) - 1.0;
            let (mut low, mut high) = (pair_of(beta_fast), pair_of(beta_slow));
            if rounded {
                (low, high) = (low.floor(), high.ceil());
            }
            let (low, high) = (low.max(0.0), high.min(last));
            let ramp = (f64::from(pair) - low) / (high - low).max(0.001);
            let kept = 1.0 - ramp.clamp(0.0, 1.0);
            kept + (1.0 - kept) / f64::from(factor)
        }
    }
}
