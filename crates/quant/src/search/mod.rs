//! The scale searches that encoders share.
//!
//! Each takes a group of floats with one weight per float (how much its error counts), and finds
//! the scale (and minimum) and the integer levels with a small weighted error. They follow the
//! searches of ggml (`ggml-quants.c`, named at each function) operation by operation: the order
//! of every sum, every tie and every early exit shows in the bytes.
//!
//! The long searches run on one group per vector lane. They return what their levels are made
//! from, rather than levels: making them again from contiguous floats is quicker than putting
//! lanes back in order.

use pulp::Simd;

use crate::lanes::{self, Lanes};

mod affine;
mod groups;
mod plain;
#[cfg(test)]
mod scalar;
mod symmetric;
mod unsigned;

pub(crate) use affine::{Affine, Trials, WEIGHTED, affine};
pub(crate) use groups::{
    Fits, MOST, emphasize_by_rows, emphasize_lanes, mean_squares, sums_of_squares, unsigned_groups,
};
pub(crate) use plain::{BATCH, offset_levels, signed_levels, spread_levels};
pub(crate) use symmetric::{symmetric, symmetric_by_moves};
pub(crate) use unsigned::unsigned_lanes;

/// Groups whose largest magnitude is below this are stored as zeros (`GROUP_MAX_EPS`).
pub(crate) const ZERO_GROUP: f32 = 1e-15;

/// The nearest integer, ties to even, for |v| < 2^22: adding 1.5 * 2^23 leaves it in the mantissa.
///
/// Outside that range the result is that of the same bit trick in C: -2^22 for infinities, 0 for
/// NaN. Huge inputs get there (a scale overflows), so it is part of the specification.
#[inline(always)]
pub(crate) fn nearest(v: f32) -> i32 {
    ((v + 12_582_912.0).to_bits() & 0x7f_ffff) as i32 - 0x40_0000
}

/// C's `roundf`, spelled so that it needs no library call on processors without such an
/// instruction. A scale too small for its reciprocal gives infinities and NaN here: 0, as the
/// conversion instruction of x86-64 does.
#[inline(always)]
pub(crate) fn round_half_away(v: f32) -> i8 {
    if v.abs() < 128.0 {
        let whole = v as i32;
        let rest = v - whole as f32;
        (whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5)) as i8
    } else {
        0
    }
}

/// The levels 0, 1 and 2 that stand for the signs -1, 0 and 1, to which `x * inverse` is rounded; 1 if
/// that is no number.
#[inline(always)]
pub(crate) fn ternary_levels<S: Simd, const N: usize>(
    simd: S,
    x: &[f32; N],
    inverse: f32,
) -> [u8; N] {
    let inverse = Lanes::splat(simd, inverse);
    let mut levels = [0.0; N];
    lanes::transform(
        simd,
        x,
        &mut levels,
        #[inline(always)]
        |x| (x * inverse).round_half_away() + x.constant(1.0),
    );
    lanes::bytes(&levels)
}

/// The largest magnitude of finite numbers.
#[inline(always)]
pub(crate) fn magnitude(x: &[f32]) -> f32 {
    // Magnitudes compare as their bits do, and integers have a vector maximum.
    f32::from_bits(x.iter().fold(0, |max, x| x.abs().to_bits().max(max)))
}

/// The value of largest magnitude, with its sign; the first of equals, 0 if all are 0. NaN counts
/// for nothing.
#[inline(always)]
pub(crate) fn extreme(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |best: f32, &v| if best.abs() < v.abs() { v } else { best })
}

/// The largest of these and 0.
#[inline(always)]
pub(crate) fn largest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |max, &v| if v > max { v } else { max })
}

/// The smallest and the largest value.
#[inline(always)]
pub(crate) fn range<const N: usize>(x: &[f32; N]) -> (f32, f32) {
    x.iter().fold((x[0], x[0]), |(min, max), &v| {
        (if v < min { v } else { min }, if v > max { v } else { max })
    })
}

/// 1/v, or 0 for 0.
#[inline(always)]
pub(crate) fn inverse(v: f32) -> f32 {
    if v != 0.0 { 1.0 / v } else { 0.0 }
}

/// Sum of squares from left to right.
#[inline(always)]
pub(crate) fn sum_squares(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |s, v| s + v * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_as_roundf() {
        for i in -5080..=5080 {
            for v in [i as f32 / 40.0, (i as f32 / 40.0).next_up(), (i as f32 / 40.0).next_down()] {
                assert_eq!(round_half_away(v), v.round() as i8, "{v}");
            }
        }
        assert_eq!(round_half_away(f32::NAN), 0);
        assert_eq!(round_half_away(f32::INFINITY), 0);
    }
}
