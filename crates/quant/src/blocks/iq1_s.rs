//! IQ1_S: octets from a ternary codebook of 2048 entries, super-blocks of 256 in 8 groups of 32,
//! 1.5625 bits per weight.
//!
//! ```text
//! d[2]  qs[32]  qh[16]
//!
//! qs[o]:              low 8 bits of the point of octet o                        o in 0..32
//! qh[2*g], [2*g + 1]: | down | s | octet 4*g + 3 | 4*g + 2 | 4*g + 1 | 4*g |    g in 0..8
//!                      15   14 12 11            9 8       6 5       3 2   0     upper 3 bits each
//!
//! x = d * (2 * s + 1) * (value + 1/8)           d: f16; -1/8 if `down` is set
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::iq1::{self, Best, LANES, Shift, Trials};
use super::{Block, Importance, error_weights, f16_at, first_bad, part, put};
use crate::layout::Place::{Every, Run};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::search;

pub(super) struct IQ1S;

/// Groups with a maximum magnitude below this are stored as zeros (`GROUP_MAX_EPS_IQ1_S`).
const ZERO_GROUP: f32 = 1e-12;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (2 * s + 1) * (value + 1/8, or - 1/8 if down)",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field {
            name: "point",
            about: "codebook index of 8 weights",
            kind: FieldKind::Point,
            count: 32,
            bits: &[
                Every { first: 16, len: 8, step: 8 },
                Run(|o| (8 * 34 + o / 4 * 16 + 3 * (o % 4), 3)),
            ],
            of: Some(|w| w / 8),
        },
        Field {
            name: "s",
            about: "scale of 32 weights",
            kind: FieldKind::Unsigned,
            count: 8,
            bits: &[Every { first: 284, len: 3, step: 16 }],
            of: Some(|w| w / 32),
        },
        Field {
            name: "down",
            about: "shift of the values: 0 up by 1/8, 1 down",
            kind: FieldKind::Unsigned,
            count: 8,
            bits: &[Every { first: 287, len: 1, step: 16 }],
            of: Some(|w| w / 32),
        },
    ],
    weight: |of| iq1::weight(of.value(0) * (2.0 * of.value(2) + 1.0), of.raw(1), of.raw(3), of.w),
};

impl Block<256, 50> for IQ1S {
    const TYPE: TensorType = TensorType::IQ1_S;
    const REQUIRES_IMPORTANCE: bool = true;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 50], out: &mut [f32; 256]) {
        let d = f16_at::<0, _>(block);
        let groups = part::<2, 32, _>(block).as_chunks::<4>().0.iter();
        let groups = groups.zip(part::<34, 16, _>(block).as_chunks().0);
        for (out, (low, high)) in out.as_chunks_mut::<32>().0.iter_mut().zip(groups) {
            let high = u16::from_le_bytes(*high);
            let d = d * f32::from(2 * (high >> 12 & 7) + 1);
            let shift = if high >> 15 == 1 { Shift::Down } else { Shift::Up };
            for (i, (out, &low)) in out.as_chunks_mut().0.iter_mut().zip(low).enumerate() {
                let point = u16::from(low) | (high >> (3 * i) & 7) << 8;
                *out = iq1::decode(d, point, shift);
            }
        }
    }

    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 256], importance: Option<Importance<256>>) -> [u8; 50] {
        let importance = importance.expect("the codec rejects rows without importance").columns;
        let energy = 2.0 * search::sum_squares(x) / 256.0;
        let weights = error_weights::emphasize(importance, x, energy);
        let mut groups = [Group::ZERO; 8];
        let pairs = x.as_chunks().0.iter().zip(weights.as_chunks().0);
        for (group, (x, weights)) in groups.iter_mut().zip(pairs) {
            *group = fit(simd, x, weights).unwrap_or(Group::ZERO);
        }
        let mut block = [0; 50];
        let max = groups.iter().fold(0.0, |max, g| if max > g.scale { max } else { g.scale });
        let d = max / 15.0;
        let inverse = 1.0 / d;
        let (mut low, mut high) = ([0; 32], [0; 16]);
        let bytes = low.as_chunks_mut::<4>().0.iter_mut().zip(high.as_chunks_mut().0);
        for (group, (low, high)) in groups.iter().zip(bytes) {
            *low = group.points.map(|point| point as u8);
            let mut bits = 0;
            for (i, point) in group.points.iter().enumerate() {
                bits |= (point >> 8) << (3 * i);
            }
            // If all scales are 0, llama.cpp's encoder omits scales and shifts.
            if max != 0.0 {
                let s = search::nearest(0.5 * (inverse * group.scale - 1.0)).clamp(0, 7);
                bits |= (s as u16) << 12 | ((group.shift == Shift::Down) as u16) << 15;
            }
            *high = bits.to_le_bytes();
        }
        // Empirical factor of ggml.
        put::<0, 2, _>(&mut block, f16::from_f32(d * 1.125).to_le_bytes());
        put::<2, 32, _>(&mut block, low);
        put::<34, 16, _>(&mut block, high);
        block
    }

    fn bad_scale(block: &[u8; 50]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

/// A group of 32 before packing.
#[derive(Clone, Copy)]
struct Group {
    scale: f32,
    shift: Shift,
    points: [u16; 4],
}

impl Group {
    const ZERO: Self = Self { scale: 0.0, shift: Shift::Up, points: [0; 4] };
}

/// Finds thresholds, shift and scale with the smallest error, then the codebook entries
/// (`quantize_row_iq1_s_impl`); `None` if the group counts as zero.
#[inline(always)]
fn fit<S: Simd>(simd: S, x: &[f32; 32], weights: &[f32; 32]) -> Option<Group> {
    if search::magnitude(x) < ZERO_GROUP {
        return None;
    }
    let ranks = iq1::ranks(x);
    let (scale, shift, borders) = best_borders(&ranks, x, weights)?;
    let (mut scale, mut shift) = (scale, SHIFTS[shift]);
    let mut levels = iq1::levels_of_runs(&ranks, borders);
    if scale < 0.0 {
        levels.iter_mut().for_each(|l| *l = 2 - *l);
        (scale, shift) = (-scale, shift.reversed());
    }
    let (x, weights, levels) = (x.as_chunks().0, weights.as_chunks().0, levels.as_chunks().0);
    let (points, scale) = iq1::snap(simd, x, weights, levels, [shift; 4], scale);
    // llama.cpp's encoder aborts if the scale is NaN (the sums overflowed).
    (scale >= 0.0).then_some(Group { scale, shift, points })
}

/// Shifts of a group, in trial order.
const SHIFTS: [Shift; 2] = [Shift::Up, Shift::Down];

/// Tries all pairs of thresholds with both shifts. Returns scale, shift and thresholds.
#[inline(always)]
fn best_borders(
    ranks: &[u32; 32],
    x: &[f32; 32],
    weights: &[f32; 32],
) -> Option<(f32, usize, (usize, usize))> {
    let (mut sorted_x, mut sorted_w) = ([0.0; 32], [0.0; 32]);
    for (i, &rank) in ranks.iter().enumerate() {
        let rank = rank as usize % 32;
        (sorted_x[rank], sorted_w[rank]) = (weights[i] * x[i], weights[i]);
    }
    // Prefix sums of w*x and w in this order.
    let (mut sum_x, mut sum_w) = ([0.0; LEN], [0.0; LEN]);
    for rank in 0..32 {
        sum_x[rank + 1] = sum_x[rank] + sorted_x[rank];
        sum_w[rank + 1] = sum_w[rank] + sorted_w[rank];
    }
    // The middle value is 1/8 or -1/8, so the contribution of the middle run differs only in its
    // sign between the shifts. The contribution of the last run depends on the second threshold
    // only; the padding behind the last threshold never wins a trial.
    let [up, down] = SHIFTS.map(Shift::values);
    let (mut last_x, mut last_w) = ([[0.0; LEN]; 2], [[f32::NEG_INFINITY; LEN]; 2]);
    for second in 0..=32 {
        let (x, w) = (sum_x[32] - sum_x[second], sum_w[32] - sum_w[second]);
        (last_x[0][second], last_w[0][second]) = (x * up[2], w * up[2] * up[2]);
        (last_x[1][second], last_w[1][second]) = (x * down[2], w * down[2] * down[2]);
    }
    let trials = Sums { x: sum_x, w: sum_w, last_x, last_w };
    // Initial guess: for normally distributed weights the middle run holds about half.
    let mut best = Best::worse_than(&trials.at(9, 16), x, weights);
    for first in 0..=32 {
        for second in (first..=32).step_by(LANES) {
            best.offer((first, second), &trials.at(first, second));
        }
    }
    best.found
}

/// Thresholds 0 to 32, padded for the lanes after the last.
const LEN: usize = 32 + LANES;

/// Sums from which all trials of a group are computed.
struct Sums {
    /// Prefix sums of w*x and w.
    x: [f32; LEN],
    w: [f32; LEN],
    /// Sums of w*x*l and w*l*l over the last run, by second threshold, for each shift.
    last_x: [[f32; LEN]; 2],
    last_w: [[f32; LEN]; 2],
}

impl Sums {
    /// Trials of this first threshold with the second thresholds starting at `second`.
    #[inline(always)]
    fn at(&self, first: usize, second: usize) -> Trials<2> {
        let [up, down] = SHIFTS.map(Shift::values);
        let (x, w) = (self.x[first], self.w[first]);
        let (up_x, up_w) = (x * up[0], w * up[0] * up[0]);
        let (down_x, down_w) = (x * down[0], w * down[0] * down[0]);
        let (sum_x, sum_w) = (&self.x[second..][..LANES], &self.w[second..][..LANES]);
        let last_x = self.last_x.each_ref().map(|last| &last[second..][..LANES]);
        let last_w = self.last_w.each_ref().map(|last| &last[second..][..LANES]);
        let mut trials = Trials { xl: [[0.0; LANES]; 2], ll: [[0.0; LANES]; 2] };
        for lane in 0..LANES {
            let middle_x = (sum_x[lane] - x) * up[1];
            let middle_w = (sum_w[lane] - w) * up[1] * up[1];
            trials.xl[0][lane] = up_x + middle_x + last_x[0][lane];
            trials.xl[1][lane] = down_x - middle_x + last_x[1][lane];
            trials.ll[0][lane] = up_w + middle_w + last_w[0][lane];
            trials.ll[1][lane] = down_w + middle_w + last_w[1][lane];
        }
        trials
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grids;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 50];
        // d = 8; group 1 has s = 1 (scale 3) and is shifted down; its octet 2 is grid point 0x501.
        block[..2].copy_from_slice(&[0x00, 0x48]);
        block[2 + 4 + 2] = 0x01;
        block[34 + 2..][..2].copy_from_slice(&(1u16 << 15 | 1 << 12 | 5 << 6).to_le_bytes());
        let mut out = [0.0; 256];
        IQ1S::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[0], out[32]), (-7.0, -27.0));
        let expected = grids::IQ1_S.values[0x501].map(|v| 24.0 * (f32::from(v) - 0.125));
        assert_eq!(out[48..56], expected);
    }
}
