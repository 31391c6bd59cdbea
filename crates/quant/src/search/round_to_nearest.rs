//! Round-to-nearest quantization without a scale search, for the 32-weight formats.
//!
//! Several blocks are processed together, one step after the other: each step is a long vector loop
//! in which no block waits for another.

use pulp::Simd;

use super::{extreme, inverse, range};
use crate::fp16;
use crate::lanes::{self, Lanes};

/// Number of blocks per batch: loops are long, and the data stays in the L1 cache.
pub(crate) const BATCH: usize = 64;

/// Result for up to [`BATCH`] blocks.
pub(crate) struct Rounded<const N: usize> {
    /// FP16 scale.
    pub scale: [[u8; 2]; BATCH],
    /// FP16 minimum.
    pub min: [[u8; 2]; BATCH],
    /// Levels; in two's complement for Q8_0.
    pub levels: [[u8; N]; BATCH],
}

/// Levels `0..2 * half` of `x ~ scale * (level - half)`: the value of largest magnitude gets level
/// 0 (`quantize_row_q4_0_ref`, `quantize_row_q5_0_ref`).
#[inline(always)]
pub(crate) fn offset_levels<S: Simd, const N: usize>(
    simd: S,
    half: u8,
    x: &[[f32; N]],
) -> Rounded<N> {
    let half = f32::from(half);
    let mut scale = [0.0; BATCH];
    for (x, scale) in x.iter().zip(&mut scale) {
        *scale = finite_extreme(simd, x);
    }
    for scale in &mut scale {
        *scale /= -half;
    }
    levels(
        simd,
        x,
        (&scale, &[0.0; BATCH]),
        #[inline(always)]
        |x, _, inverse| (x * inverse + x.constant(half + 0.5)).floor_in_range(2.0 * half - 1.0),
        #[inline(always)]
        |x, _, inverse| (x * inverse + x.constant(half + 0.5)).floor(2.0 * half - 1.0),
    )
}

/// Levels `0..=top` of `x ~ scale * level + min`, spanning the range of x (`quantize_row_q4_1_ref`,
/// `quantize_row_q5_1_ref`).
#[inline(always)]
pub(crate) fn spread_levels<S: Simd, const N: usize>(
    simd: S,
    top: u8,
    x: &[[f32; N]],
) -> Rounded<N> {
    let top = f32::from(top);
    let (mut min, mut scale) = ([0.0; BATCH], [0.0; BATCH]);
    for ((x, min), scale) in x.iter().zip(&mut min).zip(&mut scale) {
        let max;
        (*min, max) = finite_range(simd, x);
        *scale = max - *min;
    }
    for scale in &mut scale {
        *scale /= top;
    }
    levels(
        simd,
        x,
        (&scale, &min),
        #[inline(always)]
        |x, min, inverse| ((x - min) * inverse + x.constant(0.5)).floor_in_range(top),
        #[inline(always)]
        |x, min, inverse| ((x - min) * inverse + x.constant(0.5)).floor(top),
    )
}

/// Levels of magnitude up to `top` of `x ~ scale * level` (`quantize_row_q8_0_ref`).
#[inline(always)]
pub(crate) fn signed_levels<S: Simd, const N: usize>(
    simd: S,
    top: u8,
    x: &[[f32; N]],
) -> Rounded<N> {
    let top = f32::from(top);
    let mut scale = [0.0; BATCH];
    for (x, scale) in x.iter().zip(&mut scale) {
        *scale = lanes::magnitude(simd, x);
    }
    for scale in &mut scale {
        *scale /= top;
    }
    levels(
        simd,
        x,
        (&scale, &[0.0; BATCH]),
        #[inline(always)]
        |x, _, inverse| (x * inverse).round_half_away_in_range(),
        #[inline(always)]
        |x, _, inverse| (x * inverse).round_half_away(),
    )
}

/// Computes levels from floats, their minimum and the inverse scale; `in_range` is used where scale
/// and inverse are finite, since the levels are then in range.
#[inline(always)]
fn levels<S: Simd, const N: usize>(
    simd: S,
    x: &[[f32; N]],
    (scale, min): (&[f32; BATCH], &[f32; BATCH]),
    in_range: impl Fn(Lanes<S, 1>, Lanes<S, 1>, Lanes<S, 1>) -> Lanes<S, 1>,
    wild: impl Fn(Lanes<S, 1>, Lanes<S, 1>, Lanes<S, 1>) -> Lanes<S, 1>,
) -> Rounded<N> {
    let mut found =
        Rounded { scale: [[0; 2]; BATCH], min: [[0; 2]; BATCH], levels: [[0; N]; BATCH] };
    let mut integers = [[0.0; N]; BATCH];
    let mut inverses = [0.0; BATCH];
    for (i, &scale) in inverses.iter_mut().zip(scale) {
        *i = inverse(scale);
    }
    for (b, (x, integers)) in x.iter().zip(&mut integers).enumerate() {
        let (min, inverse) = (Lanes::splat(simd, min[b]), Lanes::splat(simd, inverses[b]));
        if scale[b].is_finite() && inverses[b].is_finite() {
            lanes::transform(
                simd,
                x,
                integers,
                #[inline(always)]
                |x| in_range(x, min, inverse),
            );
        } else {
            lanes::transform(
                simd,
                x,
                integers,
                #[inline(always)]
                |x| wild(x, min, inverse),
            );
        }
    }
    let integers = integers[..x.len()].as_flattened();
    lanes::store_bytes(integers, found.levels.as_flattened_mut());
    for (half, &scale) in found.scale.iter_mut().zip(scale) {
        *half = fp16::from_f32(scale).to_le_bytes();
    }
    for (half, &min) in found.min.iter_mut().zip(min) {
        *half = fp16::from_f32(min).to_le_bytes();
    }
    found
}

/// [`extreme`] of finite numbers without a serial dependency.
#[inline(always)]
fn finite_extreme<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> f32 {
    let (min, max) = lanes::range(simd, x);
    if max > -min {
        max
    } else if -min > max {
        min
    } else {
        extreme(x)
    }
}

/// [`range`] of finite numbers. The first of several zeros counts, which affects the sign of the
/// minimum.
#[inline(always)]
fn finite_range<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> (f32, f32) {
    let (min, max) = lanes::range(simd, x);
    if min == 0.0 { range(x) } else { (min, max) }
}
