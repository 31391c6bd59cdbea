//! Bias of attention scores by the distance of two positions.

use gguf_graph::{Attention, PositionBias};

use crate::portable::{exp2, ln};
use crate::weights::Weights;

/// Bias of the scores of all heads.
pub(super) enum Biases<'r> {
    None,
    Alibi { slopes: Vec<f32> },
    RelativeBuckets { weight: &'r [f32], heads: usize, max_distance: usize, bidirectional: bool },
}

impl<'r> Biases<'r> {
    /// Returns the bias of an attention operation.
    pub(super) fn new(weights: &'r Weights, attention: &Attention) -> Self {
        match attention.position_bias {
            PositionBias::None => Self::None,
            PositionBias::Alibi { max_bias } => Self::Alibi {
                slopes: (0..attention.heads)
                    .map(|head| alibi_slope(head, attention.heads, max_bias))
                    .collect(),
            },
            PositionBias::RelativeBuckets { weight, max_distance, bidirectional } => {
                Self::RelativeBuckets {
                    weight: weights.floats(weight),
                    heads: attention.heads as usize,
                    max_distance: max_distance as usize,
                    bidirectional,
                }
            }
        }
    }

    /// Adds the bias to the scores of a query with keys from position `first` on.
    pub(super) fn add(&self, head: usize, position: usize, first: usize, scores: &mut [f32]) {
        match self {
            Self::None => {}
            Self::Alibi { slopes } => {
                for (key, score) in (first..).zip(scores) {
                    *score -= slopes[head] * position.abs_diff(key) as f32;
                }
            }
            Self::RelativeBuckets { weight, heads, max_distance, bidirectional } => {
                let buckets = weight.len() / heads;
                for (key, score) in (first..).zip(scores) {
                    let bucket = bucket(position, key, buckets, *max_distance, *bidirectional);
                    *score += weight[bucket * heads + head];
                }
            }
        }
    }
}

/// Returns the slope of a head (ALiBi, arXiv 2108.12409, extended by its authors to any number of heads).
pub(super) fn alibi_slope(head: u32, heads: u32, max_bias: f32) -> f32 {
    let power = 1 << heads.ilog2();
    if head < power {
        exp2(-max_bias * (head + 1) as f32 / power as f32)
    } else {
        exp2(-max_bias * (2 * (head - power) + 1) as f32 / (2 * power) as f32)
    }
}

/// Returns the bucket of a distance (T5, arXiv 1910.10683): half of the buckets are for single distances, the
/// others grow logarithmically.
fn bucket(
    position: usize,
    key: usize,
    buckets: usize,
    max_distance: usize,
    bidirectional: bool,
) -> usize {
    let (buckets, start) = match (bidirectional, key > position) {
        (true, later) => (buckets / 2, if later { buckets / 2 } else { 0 }),
        (false, _) => (buckets, 0),
    };
    let distance =
        if bidirectional { position.abs_diff(key) } else { position.saturating_sub(key) };
    let exact = buckets / 2;
    if distance < exact {
        return start + distance;
    }
    let (distance, exact_f) = (distance as f32, exact as f32);
    let scale = ln(max_distance as f32 / exact_f);
    let beyond = ln(distance / exact_f) / scale * (buckets - exact) as f32;
    start + (exact + beyond as usize).min(buckets - 1)
}
