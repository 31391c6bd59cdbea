//! `rope`

use gguf_graph::{FreqFactors, Rope, RopeLayout, RopeParameters, RopeScaling};

use super::Kernel;
use super::parallel::each_row;
use crate::portable::sin_cos;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;
use crate::weights::Weights;

impl Kernel for Rope {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let parameters = &self.parameters;
        let frequencies = frequencies(parameters, &run.executor.weights, run.context_len);
        let len = x.width / self.heads as usize;
        let (start, half) = (parameters.start as usize, frequencies.len());
        let block = parameters.block as usize;
        let sign = if parameters.inverse { -1.0 } else { 1.0 };
        let factor = parameters.attention_factor;
        each_row(out, |row, out| {
            out.copy_from_slice(x.row(row));
            let position = (run.positions[row] / block * block) as f32;
            let rotations: Vec<(f32, f32)> = frequencies
                .iter()
                .map(|frequency| {
                    let (sin, cos) = sin_cos(position * frequency);
                    (sign * sin * factor, cos * factor)
                })
                .collect();
            for head in out.chunks_exact_mut(len) {
                let head = &mut head[start..start + 2 * half];
                for (i, (sin, cos)) in rotations.iter().enumerate() {
                    let (a, b) = match parameters.layout {
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

    fn overwrites(&self) -> bool {
        true
    }
}

/// Returns the angle of each pair per position.
fn frequencies(parameters: &RopeParameters, weights: &Weights, context_len: usize) -> Vec<f32> {
    let RopeParameters { dimensions, freq_base, scaling, .. } = *parameters;
    let factors = match parameters.freq_factors {
        FreqFactors::None => None,
        FreqFactors::Fixed(weight) => Some(weights.floats(weight)),
        FreqFactors::LongRope { short, long, original_context } => {
            let id = if context_len > original_context as usize { long } else { short };
            Some(weights.floats(id))
        }
    };
    let frequency = |i: u32| {
        let exponent = -f64::from(2 * i) / f64::from(dimensions);
        let factor = factors.map_or(1.0, |factors| factors[i as usize]);
        let frequency = libm::pow(f64::from(freq_base), exponent) / f64::from(factor);
        (frequency * scale(scaling, i, dimensions, freq_base)) as f32
    };
    (0..dimensions / 2).map(frequency).collect()
}

/// Returns the factor of RoPE scaling for the frequency of a pair.
fn scale(scaling: RopeScaling, pair: u32, dimensions: u32, freq_base: f32) -> f64 {
    match scaling {
        RopeScaling::None => 1.0,
        RopeScaling::Linear(factor) => 1.0 / f64::from(factor),
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, truncate } => {
            let correction = |rotations: f32| {
                let rotations = f64::from(rotations);
                let wavelength = f64::from(original_context) / (rotations * std::f64::consts::TAU);
                f64::from(dimensions) * libm::log(wavelength) / (2.0 * libm::log(f64::from(freq_base)))
            };
            let last = f64::from(dimensions) - 1.0;
            let (mut low, mut high) = (correction(beta_fast), correction(beta_slow));
            if truncate {
                (low, high) = (low.floor(), high.ceil());
            }
            let (low, high) = (low.max(0.0), high.min(last));
            let ramp = (f64::from(pair) - low) / (high - low).max(0.001);
            let extrapolation = 1.0 - ramp.clamp(0.0, 1.0);
            extrapolation + (1.0 - extrapolation) / f64::from(factor)
        }
    }
}
