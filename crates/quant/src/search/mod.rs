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
#[cfg(test)]
mod scalar;
mod symmetric;
mod unsigned;

pub(crate) use affine::{Trials, WEIGHTED, affine};
pub(crate) use groups::{Fits, MOST, emphasize_lanes, sums_of_squares, unsigned_groups};
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

/// The same of finite numbers, without one having to wait for the one before.
#[inline(always)]
fn extreme_of_finite<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> f32 {
    let magnitude = lanes::magnitude(simd, x);
    let (positive, negative) =
        (lanes::contains(simd, x, magnitude), lanes::contains(simd, x, -magnitude));
    match (positive, negative) {
        (true, false) => magnitude,
        (false, true) => -magnitude,
        _ => extreme(x),
    }
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

/// Scale and levels `0..2 * half` of `x ~ scale * (level - half)` without a search: the extreme
/// gets level 0 (`quantize_row_q4_0_ref`, `quantize_row_q5_0_ref`).
#[inline(always)]
pub(crate) fn offset_levels<S: Simd, const N: usize>(
    simd: S,
    half: u8,
    x: &[f32; N],
) -> (f32, [u8; N]) {
    let half = f32::from(half);
    let scale = extreme_of_finite(simd, x) / -half;
    let inverse = Lanes::splat(simd, inverse(scale));
    let mut levels = [0.0; N];
    lanes::transform(
        simd,
        x,
        &mut levels,
        #[inline(always)]
        |x| (x * inverse + x.constant(half + 0.5)).floor(2.0 * half - 1.0),
    );
    (scale, lanes::bytes(&levels))
}

/// Scale, minimum and levels `0..=top` of `x ~ scale * level + min` without a search: the levels
/// span the range of x (`quantize_row_q4_1_ref`, `quantize_row_q5_1_ref`).
#[inline(always)]
pub(crate) fn spread_levels<S: Simd, const N: usize>(
    simd: S,
    top: u8,
    x: &[f32; N],
) -> (f32, f32, [u8; N]) {
    let (min, max) = range(x);
    let scale = (max - min) / f32::from(top);
    let inverse = Lanes::splat(simd, inverse(scale));
    let mut levels = [0.0; N];
    lanes::transform(
        simd,
        x,
        &mut levels,
        #[inline(always)]
        |x| ((x - x.constant(min)) * inverse + x.constant(0.5)).floor(f32::from(top)),
    );
    (scale, min, lanes::bytes(&levels))
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
