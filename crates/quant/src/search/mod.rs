//! Scale searches that the encoders share.
//!
//! Each search takes a group of floats and one weight per float (the weight of its squared error)
//! and finds the scale (and minimum) and the integer levels with a small weighted error. The
//! searches follow ggml (`ggml-quants.c`, named at each function) operation by operation: the order
//! of every sum, every tie and every early exit affects the bytes.
//!
//! The long searches run one group per vector lane. They return the parameters of the levels
//! instead of the levels: recomputing these from contiguous floats is faster than transposing lanes
//! back.

use pulp::Simd;

use crate::lanes::{self, Lanes};

mod affine;
mod groups;
#[cfg(test)]
mod reference;
mod round_to_nearest;
mod symmetric;
mod unsigned;

pub(crate) use affine::{Affine, Trials, WEIGHTED, affine};
pub(crate) use groups::{
    Fits, MAX_GROUPS, emphasize_by_rows, emphasize_lanes, mean_squares, sums_of_squares,
    unsigned_groups,
};
pub(crate) use round_to_nearest::{BATCH, offset_levels, signed_levels, spread_levels};
pub(crate) use symmetric::{symmetric, symmetric_descent};
pub(crate) use unsigned::unsigned_lanes;

/// Groups with a maximum magnitude below this are stored as zeros (`GROUP_MAX_EPS`).
pub(crate) const ZERO_GROUP: f32 = 1e-15;

/// Rounds to the nearest integer, ties to even, for |v| < 2^22: adding 1.5 * 2^23 leaves the
/// integer in the mantissa.
///
/// Outside that range the result is that of the same bit trick in C: -2^22 for infinity, 0 for NaN.
/// Huge inputs reach it (a scale overflows), so it is part of the specification.
#[inline(always)]
pub(crate) fn nearest(v: f32) -> i32 {
    ((v + 12_582_912.0).to_bits() & 0x7f_ffff) as i32 - 0x40_0000
}

/// C's `roundf`, written so that it needs no library call on processors without such an
/// instruction. If a scale is so small that its reciprocal overflows, the input is infinite or NaN:
/// returns 0, as the x86-64 conversion instruction does.
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

/// Rounds `x * inverse` to the ternary levels 0, 1 and 2, which represent -1, 0 and 1; NaN becomes
/// 1.
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

/// Max magnitude of finite numbers.
#[inline(always)]
pub(crate) fn magnitude(x: &[f32]) -> f32 {
    // Magnitudes compare like their bits, and integers have a vector maximum.
    f32::from_bits(x.iter().fold(0, |max, x| x.abs().to_bits().max(max)))
}

/// Value of largest magnitude with its sign; the first of equals, 0 if all are 0. NaN is ignored.
#[inline(always)]
pub(crate) fn extreme(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |best: f32, &v| if best.abs() < v.abs() { v } else { best })
}

/// Maximum of the values and 0.
#[inline(always)]
pub(crate) fn largest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |max, &v| if v > max { v } else { max })
}

/// Minimum and maximum.
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
    fn matches_roundf() {
        for i in -5080..=5080 {
            for v in [i as f32 / 40.0, (i as f32 / 40.0).next_up(), (i as f32 / 40.0).next_down()] {
                // Exact in F64; `roundf` of some C libraries rounds the number before 0.5 up.
                let rounded = (f64::from(v).abs() + 0.5).floor().copysign(f64::from(v));
                assert_eq!(round_half_away(v), rounded as i8, "{v}");
            }
        }
        assert_eq!(round_half_away(f32::NAN), 0);
        assert_eq!(round_half_away(f32::INFINITY), 0);
    }
}
