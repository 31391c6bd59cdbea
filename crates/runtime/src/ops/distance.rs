//! What attention adds to scores for the distance of two positions.

use gguf_graph::{Attention, PositionBias};

/// What is added to scores for the distance of two positions.
pub(super) enum Biases<'r> {
    None,
    Slopes(Vec<f32>),
    Buckets { weight: &'r [f32], heads: usize, max_distance: usize, both_sides: bool },
}

impl crate::executor::Executor {
    pub(super) fn biases(&self, attention: &Attention) -> Biases<'_> {
        match attention.position_bias {
            PositionBias::None => Biases::None,
            PositionBias::Alibi { max_bias: max } => Biases::Slopes(
                (0..attention.heads).map(|head| slope(head, attention.heads, max)).collect(),
            ),
            PositionBias::RelativeBuckets { weight, max_distance, bidirectional: both_sides } => {
                Biases::Buckets {
                    weight: self.weights.floats(weight),
                    heads: attention.heads as usize,
                    max_distance: max_distance as usize,
                    both_sides,
                }
            }
        }
    }
}

impl Biases<'_> {
    /// Adds to the scores of a query with keys from `first` on.
    pub(super) fn add(&self, head: usize, position: usize, first: usize, scores: &mut [f32]) {
        match self {
            Self::None => {}
            Self::Slopes(slopes) => {
                for (key, score) in (first..).zip(scores) {
                    *score -= slopes[head] * position.abs_diff(key) as f32;
                }
            }
            Self::Buckets { weight, heads, max_distance, both_sides } => {
                let buckets = weight.len() / heads;
                for (key, score) in (first..).zip(scores) {
                    let bucket = bucket(position, key, buckets, *max_distance, *both_sides);
                    *score += weight[bucket * heads + head];
                }
            }
        }
    }
}

/// The slope of a head (ALiBi, arXiv 2108.12409, as its authors extend it to any number of heads).
pub(super) fn slope(head: u32, heads: u32, max: f32) -> f32 {
    let power = 1 << heads.ilog2();
    if head < power {
        (-max * (head + 1) as f32 / power as f32).exp2()
    } else {
        (-max * (2 * (head - power) + 1) as f32 / (2 * power) as f32).exp2()
    }
}

/// The bucket of a distance (T5, arXiv 1910.10683): half of them for single distances, the others
/// growing as the logarithm.
fn bucket(
    position: usize,
    key: usize,
    buckets: usize,
    max_distance: usize,
    both_sides: bool,
) -> usize {
    let (buckets, start) = match (both_sides, key > position) {
        (true, later) => (buckets / 2, if later { buckets / 2 } else { 0 }),
        (false, _) => (buckets, 0),
    };
    let distance = if both_sides { position.abs_diff(key) } else { position.saturating_sub(key) };
    let exact = buckets / 2;
    if distance < exact {
        return start + distance;
    }
    let (distance, exact_f) = (distance as f32, exact as f32);
    let scale = (max_distance as f32 / exact_f).ln();
    let beyond = (distance / exact_f).ln() / scale * (buckets - exact) as f32;
    start + (exact + beyond as usize).min(buckets - 1)
}
