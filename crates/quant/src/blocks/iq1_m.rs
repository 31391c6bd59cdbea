//! IQ1_M: octets from a ternary codebook of 2048 entries, super-blocks of 256 in 16 groups of 16,
//! 1.75 bits per weight.
//!
//! ```text
//! qs[32]  qh[16]  scales[8]
//!
//! qs[o]:                  low 8 bits of the point of octet o                         o in 0..32
//! qh[g]:                  | down | octet 2*g + 1 | down | octet 2*g |                g in 0..16
//!                          7      6             4 3      2         0                 upper 3 bits
//! scales[2*j], [2*j + 1]: | d, bits 4*j to 4*j + 3 | s[4*j + 3] | .. 2 | .. 1 | s[4*j] |  j in 0..4
//!                          15                    12 11         9 8    6 5    3 2      0
//!
//! x = d * (2 * s[g] + 1) * (value + 1/8)            d: f16; -1/8 if the octet's `down` is set
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::iq1::{self, Best, LANES, Shift, Sums, Trials};
use super::{Block, Importance, error_weights, first_bad, part, put};
use crate::layout::Place::{Every, Of, Run};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::{bits, fp16, search};

pub(super) struct IQ1M;

/// Groups with a maximum magnitude below this are stored as zeros (`GROUP_MAX_EPS_IQ1_M`).
const ZERO_GROUP: f32 = 1e-7;

/// Shifts of the two octets of a group, in trial order.
const SHIFTS: [[Shift; 2]; 4] = [
    [Shift::Up, Shift::Up],
    [Shift::Up, Shift::Down],
    [Shift::Down, Shift::Up],
    [Shift::Down, Shift::Down],
];

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (2 * s + 1) * (value + 1/8, or - 1/8 if down)",
    fields: &[
        Field {
            name: "point",
            about: "codebook index of 8 weights",
            kind: FieldKind::Point,
            count: 32,
            bits: &[Every { first: 0, len: 8, step: 8 }, Every { first: 256, len: 3, step: 4 }],
            of: Some(|w| w / 8),
        },
        Field {
            name: "down",
            about: "shift of the values: 0 up by 1/8, 1 down",
            kind: FieldKind::Unsigned,
            count: 32,
            bits: &[Every { first: 259, len: 1, step: 4 }],
            of: Some(|w| w / 8),
        },
        Field {
            name: "s",
            about: "scale of 16 weights",
            kind: FieldKind::Unsigned,
            count: 16,
            bits: &[Run(|g| (8 * 48 + g / 4 * 16 + 3 * (g % 4), 3))],
            of: Some(|w| w / 16),
        },
        Field::scale(&[Of(|_| &[(396, 4), (412, 4), (428, 4), (444, 4)])]),
    ],
    weight: |of| iq1::weight(of.value(3) * (2.0 * of.value(2) + 1.0), of.raw(0), of.raw(1), of.w),
};

impl Block<256, 56> for IQ1M {
    const TYPE: TensorType = TensorType::IQ1_M;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 56], out: &mut [f32; 256]) {
        let (d, scales) = unpack(part::<48, 8, _>(block));
        let high = bits::unpack::<4, 1, _, 32>(part::<32, 16, _>(block));
        let octets = part::<0, 32, _>(block).as_chunks::<2>().0.iter().zip(high.as_chunks::<2>().0);
        let groups = out.as_chunks_mut::<16>().0.iter_mut().zip(scales);
        for ((out, s), (low, high)) in groups.zip(octets) {
            let d = d * f32::from(2 * s + 1);
            for (out, (&low, high)) in out.as_chunks_mut().0.iter_mut().zip(low.iter().zip(high)) {
                let shift = if high >> 3 == 1 { Shift::Down } else { Shift::Up };
                *out = iq1::decode(d, u16::from(low) | u16::from(high & 7) << 8, shift);
            }
        }
    }

    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 256], importance: Option<Importance<256>>) -> [u8; 56] {
        let energy = 2.0 * search::sum_squares(x) / 256.0;
        let weights = match importance {
            None => error_weights::squares(x),
            Some(w) => error_weights::emphasize(w.columns, x, energy),
        };
        let mut groups = [Group::ZERO; 16];
        let pairs = x.as_chunks().0.iter().zip(weights.as_chunks().0);
        for (group, (x, weights)) in groups.iter_mut().zip(pairs) {
            *group = fit(simd, x, weights).unwrap_or(Group::ZERO);
        }
        let max = groups.iter().fold(0.0, |max, g| if max > g.scale { max } else { g.scale });
        let mut d = max / 15.0;
        let mut s = [0; 16];
        // If all scales are 0, llama.cpp's encoder omits scales and shifts.
        if max != 0.0 {
            let inverse = 1.0 / d;
            s = groups.map(|g| search::nearest(0.5 * (inverse * g.scale - 1.0)).clamp(0, 7) as u8);
            let mut sums = Sums::default();
            let octets = x.as_chunks().0.iter().zip(weights.as_chunks().0);
            for (o, (x, weights)) in octets.enumerate() {
                let Group { points, shifts, .. } = groups[o / 2];
                let factor = f32::from(2 * s[o / 2] + 1);
                sums.add(x, weights, points[o % 2], shifts[o % 2], factor);
            }
            if sums.ll > 0.0 {
                d = sums.xl / sums.ll;
            }
        } else {
            groups.iter_mut().for_each(|g| g.shifts = [Shift::Up; 2]);
        }
        let points = groups.map(|g| g.points);
        let points: &[u16; 32] = points.as_flattened().as_array().expect("16 pairs are 32");
        let shifts = groups.map(|g| g.shifts);
        let (mut low, mut high) = ([0; 32], [0; 32]);
        for (o, (point, shift)) in points.iter().zip(shifts.as_flattened()).enumerate() {
            low[o] = *point as u8;
            high[o] = (point >> 8) as u8 | ((*shift == Shift::Down) as u8) << 3;
        }
        // Empirical factor of ggml.
        let d = f16::from_f32(d * 1.1125);
        let mut block = [0; 56];
        put::<0, 32, _>(&mut block, low);
        put::<32, 16, _>(&mut block, bits::pack::<4, 1, _, _>(&high, 0));
        put::<48, 8, _>(&mut block, pack(d, &s));
        block
    }

    fn bad_scale(block: &[u8; 56]) -> Option<(&'static str, f32)> {
        first_bad([("d", unpack(part::<48, 8, _>(block)).0)])
    }
}

fn pack(d: f16, s: &[u8; 16]) -> [u8; 8] {
    let mut bytes = [0; 8];
    let groups = bytes.as_chunks_mut().0.iter_mut().zip(s.as_chunks::<4>().0);
    for (j, (bytes, s)) in groups.enumerate() {
        let d = d.to_bits() >> (4 * j) << 12;
        let s = s.iter().rev().fold(0, |bits, s| bits << 3 | u16::from(*s));
        *bytes = (d | s).to_le_bytes();
    }
    bytes
}

#[inline(always)]
fn unpack(bytes: &[u8; 8]) -> (f32, [u8; 16]) {
    let (mut d, mut scales) = (0, [0; 16]);
    let groups = bytes.as_chunks().0.iter().zip(scales.as_chunks_mut::<4>().0);
    for (j, (bytes, s)) in groups.enumerate() {
        let bits = u16::from_le_bytes(*bytes);
        d |= bits >> 12 << (4 * j);
        *s = std::array::from_fn(|i| (bits >> (3 * i)) as u8 & 7);
    }
    (fp16::to_f32(d), scales)
}

/// A group of 16 before packing.
#[derive(Clone, Copy)]
struct Group {
    scale: f32,
    shifts: [Shift; 2],
    points: [u16; 2],
}

impl Group {
    const ZERO: Self = Self { scale: 0.0, shifts: [Shift::Up; 2], points: [0; 2] };
}

/// Finds thresholds, shifts and scale with the smallest error, then the codebook entries
/// (`quantize_row_iq1_m_impl`); `None` if the group counts as zero.
#[inline(always)]
fn fit<S: Simd>(simd: S, x: &[f32; 16], weights: &[f32; 16]) -> Option<Group> {
    if search::magnitude(x) < ZERO_GROUP {
        return None;
    }
    let ranks = iq1::ranks(x);
    let (scale, shifts, borders) = best_borders(&ranks, x, weights)?;
    let (mut scale, mut shifts) = (scale, SHIFTS[shifts]);
    let mut levels = iq1::levels_of_runs(&ranks, borders);
    if scale < 0.0 {
        levels.iter_mut().for_each(|l| *l = 2 - *l);
        (scale, shifts) = (-scale, shifts.map(Shift::reversed));
    }
    let (x, weights, levels) = (x.as_chunks().0, weights.as_chunks().0, levels.as_chunks().0);
    let (points, scale) = iq1::snap(simd, x, weights, levels, shifts, scale);
    // llama.cpp's encoder aborts if the scale is NaN (the sums overflowed).
    (scale >= 0.0).then_some(Group { scale, shifts, points })
}

/// Tries all pairs of thresholds with all shifts. Returns scale, shifts and thresholds.
#[inline(always)]
fn best_borders(
    ranks: &[u32; 16],
    x: &[f32; 16],
    weights: &[f32; 16],
) -> Option<(f32, usize, (usize, usize))> {
    // w*x and w in ascending order of x, separately for the two octets: 0 where a weight belongs to
    // the other octet.
    let (mut sorted_x, mut sorted_w) = ([[0.0; 16]; 2], [[0.0; 16]; 2]);
    for (i, &rank) in ranks.iter().enumerate() {
        let rank = rank as usize % 16;
        (sorted_x[i / 8][rank], sorted_w[i / 8][rank]) = (weights[i] * x[i], weights[i]);
    }
    // Prefix sums in this order. The padding behind the last threshold never wins a trial.
    let (mut sum_x, mut sum_w) = ([[0.0; LEN]; 2], [[f32::INFINITY; LEN]; 2]);
    for h in 0..2 {
        sum_w[h][0] = 0.0;
        for rank in 0..16 {
            sum_x[h][rank + 1] = sum_x[h][rank] + sorted_x[h][rank];
            sum_w[h][rank + 1] = sum_w[h][rank] + sorted_w[h][rank];
        }
    }
    // Initial guess: for normally distributed weights the middle run holds about half.
    let mut best = Best::worse_than(&trials(&sum_x, &sum_w, 4, 4), x, weights);
    for first in 0..=16 {
        for second in (first..=16).step_by(LANES) {
            best.offer((first, second), &trials(&sum_x, &sum_w, first, second));
        }
    }
    best.found
}

/// Thresholds 0 to 16, padded for the lanes after the last.
const LEN: usize = 16 + LANES;

/// Trials of this first threshold with the second thresholds starting at `second`, from the prefix
/// sums of w*x and w of each octet.
#[inline(always)]
fn trials(
    sum_x: &[[f32; LEN]; 2],
    sum_w: &[[f32; LEN]; 2],
    first: usize,
    second: usize,
) -> Trials<4> {
    // Sums of each octet under both shifts. Neighbouring values differ by 1, which merges three
    // sums into one.
    let (mut half_xl, mut half_ll) = ([[[0.0; LANES]; 2]; 2], [[[0.0; LANES]; 2]; 2]);
    for h in 0..2 {
        for (s, shift) in [Shift::Up, Shift::Down].into_iter().enumerate() {
            let v = shift.values();
            let (x, w) = (sum_x[h][16] * v[2], sum_w[h][16] * v[2] * v[2]);
            let first_w = w + sum_w[h][first] * (v[0] * v[0] - v[1] * v[1]);
            let first_x = sum_x[h][first];
            let sums = sum_x[h][second..][..LANES].iter().zip(&sum_w[h][second..][..LANES]);
            let half = half_xl[h][s].iter_mut().zip(&mut half_ll[h][s]);
            for ((xl, ll), (sum_x, sum_w)) in half.zip(sums) {
                *xl = x - (first_x + sum_x);
                *ll = first_w + sum_w * (v[1] * v[1] - v[2] * v[2]);
            }
        }
    }
    let mut trials = Trials { xl: [[0.0; LANES]; 4], ll: [[0.0; LANES]; 4] };
    for (s, (xl, ll)) in trials.xl.iter_mut().zip(&mut trials.ll).enumerate() {
        for lane in 0..LANES {
            xl[lane] = half_xl[0][s / 2][lane] + half_xl[1][s % 2][lane];
            ll[lane] = half_ll[0][s / 2][lane] + half_ll[1][s % 2][lane];
        }
    }
    trials
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grids;

    #[test]
    fn scales_match_the_drawing() {
        let mut s = [0; 16];
        (s[0], s[3], s[13]) = (1, 7, 2);
        let bytes = pack(f16::from_bits(0x4abc), &s);
        assert_eq!(bytes, [0x01, 0xce, 0x00, 0xb0, 0x00, 0xa0, 0x10, 0x40]);
        assert_eq!(unpack(&bytes), (f16::from_bits(0x4abc).to_f32(), s));
    }

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 56];
        // d = 8; group 1 has s = 1 (scale 3); its octet 1 is grid point 0x501, shifted down.
        let mut s = [0; 16];
        s[1] = 1;
        block[48..].copy_from_slice(&pack(f16::from_f32(8.0), &s));
        (block[3], block[32 + 1]) = (0x01, 0xd0);
        let mut out = [0.0; 256];
        IQ1M::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[0], out[16]), (-7.0, -21.0));
        let expected = grids::IQ1_S.values[0x501].map(|v| 24.0 * (f32::from(v) - 0.125));
        assert_eq!(out[24..32], expected);
    }
}
