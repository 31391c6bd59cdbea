//! IQ1_S: octets of a ternary codebook of 2048, super-blocks of 256 in 8 groups of 32, 1.5625 bits
//! per weight.
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

use super::ternary::{self, Shift};
use super::{Block, Weights, first_bad, half_at, importance, part, put};
use crate::search;

pub(super) struct IQ1S;

/// Groups whose largest magnitude is below this are stored as zeros (`GROUP_MAX_EPS_IQ1_S`).
const ZERO_GROUP: f32 = 1e-12;

impl Block<256, 50> for IQ1S {
    const TYPE: TensorType = TensorType::IQ1_S;
    const REQUIRES_WEIGHTS: bool = true;

    fn decode(block: &[u8; 50], out: &mut [f32; 256]) {
        let d = half_at::<0, _>(block).to_f32();
        let groups = part::<2, 32, _>(block).as_chunks::<4>().0.iter();
        let groups = groups.zip(part::<34, 16, _>(block).as_chunks().0);
        for (out, (low, high)) in out.as_chunks_mut::<32>().0.iter_mut().zip(groups) {
            let high = u16::from_le_bytes(*high);
            let d = d * f32::from(2 * (high >> 12 & 7) + 1);
            let shift = if high >> 15 == 1 { Shift::Down } else { Shift::Up };
            for (i, (out, &low)) in out.as_chunks_mut().0.iter_mut().zip(low).enumerate() {
                let point = u16::from(low) | (high >> (3 * i) & 7) << 8;
                ternary::decode(out, d, point, shift);
            }
        }
    }

    #[inline(always)]
    fn encode(x: &[f32; 256], weights: Option<Weights<256>>) -> [u8; 50] {
        let importance = weights.expect("the codec refuses rows without required weights").columns;
        let energy = 2.0 * search::sum_squares(x) / 256.0;
        let weights = importance::emphasize(importance, x, energy);
        let mut groups = [Group::ZERO; 8];
        let pairs = x.as_chunks().0.iter().zip(weights.as_chunks().0);
        for (group, (x, weights)) in groups.iter_mut().zip(pairs) {
            *group = fit(x, weights).unwrap_or(Group::ZERO);
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
            // If all scales are 0, the official encoder leaves scales and shifts out.
            if max != 0.0 {
                let s = search::nearest(0.5 * (inverse * group.scale - 1.0)).clamp(0, 7);
                bits |= (s as u16) << 12 | ((group.shift == Shift::Down) as u16) << 15;
            }
            *high = bits.to_le_bytes();
        }
        // The factor was found by experiment by the authors of ggml.
        put::<0, 2, _>(&mut block, f16::from_f32(d * 1.125).to_le_bytes());
        put::<2, 32, _>(&mut block, low);
        put::<34, 16, _>(&mut block, high);
        block
    }

    fn bad_scale(block: &[u8; 50]) -> Option<(&'static str, f32)> {
        first_bad([("d", half_at::<0, _>(block))])
    }
}

/// A group of 32 before it is packed.
#[derive(Clone, Copy)]
struct Group {
    scale: f32,
    shift: Shift,
    points: [u16; 4],
}

impl Group {
    const ZERO: Self = Self { scale: 0.0, shift: Shift::Up, points: [0; 4] };
}

/// Finds borders, shift and scale with the smallest error, then the points of the codebook
/// (`quantize_row_iq1_s_impl`); `None` if the group counts as zero.
#[inline(always)]
fn fit(x: &[f32; 32], weights: &[f32; 32]) -> Option<Group> {
    if search::magnitude(x) < ZERO_GROUP {
        return None;
    }
    let order = ternary::ascending(x);
    // Sums of w*x and w over the first weights in this order.
    let (mut sum_x, mut sum_w) = ([0.0; 33], [0.0; 33]);
    for (rank, &i) in order.iter().enumerate() {
        sum_x[rank + 1] = sum_x[rank] + weights[i] * x[i];
        sum_w[rank + 1] = sum_w[rank] + weights[i];
    }
    let (mut best, mut found) = (-f32::MAX, None);
    for first in 0..=32 {
        let [up, down] = [Shift::Up, Shift::Down].map(|shift| sums(&sum_x, &sum_w, first, shift));
        let better = |best: f32, xl: f32, ll: f32| (ll > 0.0) & (xl * xl > best * ll);
        // Most first borders do not help; without early exit the compiler checks many at once.
        let any_better = |(xl, ll): &([f32; 33], [f32; 33])| {
            xl.iter().zip(ll).fold(false, |any, (&xl, &ll)| any | better(best, xl, ll))
        };
        if !any_better(&up) && !any_better(&down) {
            continue;
        }
        for second in first..=32 {
            for (shift, (xl, ll)) in [(Shift::Up, &up), (Shift::Down, &down)] {
                let (xl, ll) = (xl[second], ll[second]);
                if better(best, xl, ll) {
                    let scale = xl / ll;
                    best = scale * xl;
                    found = Some((scale, shift, (first, second)));
                }
            }
        }
    }
    let (mut scale, mut shift, borders) = found?;
    let mut levels = ternary::levels_of_runs(&order, borders);
    if scale < 0.0 {
        levels = levels.map(|l| 2 - l);
        (scale, shift) = (-scale, shift.reversed());
    }
    let (x, weights, levels) = (x.as_chunks().0, weights.as_chunks().0, levels.as_chunks().0);
    let (points, scale) = ternary::snap(x, weights, levels, [shift; 4], scale);
    // The official encoder stops at a scale that is no number: sums overflowed.
    (scale >= 0.0).then_some(Group { scale, shift, points })
}

/// Sums of w*x*l and w*l*l for each second border; without meaning where it is before the first.
#[inline(always)]
fn sums(
    sum_x: &[f32; 33],
    sum_w: &[f32; 33],
    first: usize,
    shift: Shift,
) -> ([f32; 33], [f32; 33]) {
    let v = shift.values();
    let (x, w) = (sum_x[first], sum_w[first]);
    let (x0, w0) = (x * v[0], w * v[0] * v[0]);
    let (mut xl, mut ll) = ([0.0; 33], [0.0; 33]);
    for ((xl, ll), (sx, sw)) in xl.iter_mut().zip(&mut ll).zip(sum_x.iter().zip(sum_w)) {
        *xl = x0 + (sx - x) * v[1] + (sum_x[32] - sx) * v[2];
        *ll = w0 + (sw - w) * v[1] * v[1] + (sum_w[32] - sw) * v[2] * v[2];
    }
    (xl, ll)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grids;

    #[test]
    fn bytes_stand_where_the_drawing_says() {
        let mut block = [0; 50];
        // d = 8; group 1 has s = 1 (scale 3) and is shifted down; its octet 2 is point 0x501.
        block[..2].copy_from_slice(&[0x00, 0x48]);
        block[2 + 4 + 2] = 0x01;
        block[34 + 2..][..2].copy_from_slice(&(1u16 << 15 | 1 << 12 | 5 << 6).to_le_bytes());
        let mut out = [0.0; 256];
        IQ1S::decode(&block, &mut out);
        assert_eq!((out[0], out[32]), (-7.0, -27.0));
        let expected = grids::IQ1_S.values[0x501].map(|v| 24.0 * (f32::from(v) - 0.125));
        assert_eq!(out[48..56], expected);
    }
}
