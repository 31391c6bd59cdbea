//! Scales without a search, for the formats of 32 weights.
//!
//! Many blocks at once, one step after the other: each step is then a long loop over vectors, in
//! which no block waits for the one before.

use pulp::Simd;

use super::{extreme, inverse, range};
use crate::halves;
use crate::lanes::{self, Lanes};

/// Blocks to work on at once: loops are long, and all stays in the first cache.
pub(crate) const BATCH: usize = 64;

/// What is found for up to [`BATCH`] blocks.
pub(crate) struct Plain<const N: usize> {
    /// Scale, as a half.
    pub scale: [[u8; 2]; BATCH],
    /// Minimum, as a half.
    pub min: [[u8; 2]; BATCH],
    /// The levels; for Q8_0 in two's complement.
    pub levels: [[u8; N]; BATCH],
}

/// Levels `0..2 * half` of `x ~ scale * (level - half)`: the extreme gets level 0
/// (`quantize_row_q4_0_ref`, `quantize_row_q5_0_ref`).
#[inline(always)]
pub(crate) fn offset_levels<S: Simd, const N: usize>(
    simd: S,
    half: u8,
    x: &[[f32; N]],
) -> Plain<N> {
    let half = f32::from(half);
    let mut scale = [0.0; BATCH];
    for (x, scale) in x.iter().zip(&mut scale) {
        *scale = extreme_of_finite(simd, x);
    }
    for scale in &mut scale {
        *scale /= -half;
    }
    levels(
        simd,
        x,
        (&scale, &[0.0; BATCH]),
        #[inline(always)]
        |x, _, inverse| (x * inverse + x.constant(half + 0.5)).floor_tame(2.0 * half - 1.0),
        #[inline(always)]
        |x, _, inverse| (x * inverse + x.constant(half + 0.5)).floor(2.0 * half - 1.0),
    )
}

/// Levels `0..=top` of `x ~ scale * level + min`, which span the range of x
/// (`quantize_row_q4_1_ref`, `quantize_row_q5_1_ref`).
#[inline(always)]
pub(crate) fn spread_levels<S: Simd, const N: usize>(simd: S, top: u8, x: &[[f32; N]]) -> Plain<N> {
    let top = f32::from(top);
    let (mut min, mut scale) = ([0.0; BATCH], [0.0; BATCH]);
    for ((x, min), scale) in x.iter().zip(&mut min).zip(&mut scale) {
        let max;
        (*min, max) = range_of_finite(simd, x);
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
        |x, min, inverse| ((x - min) * inverse + x.constant(0.5)).floor_tame(top),
        #[inline(always)]
        |x, min, inverse| ((x - min) * inverse + x.constant(0.5)).floor(top),
    )
}

/// Levels of up to `top` in magnitude of `x ~ scale * level` (`quantize_row_q8_0_ref`).
#[inline(always)]
pub(crate) fn signed_levels<S: Simd, const N: usize>(simd: S, top: u8, x: &[[f32; N]]) -> Plain<N> {
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
        |x, _, inverse| (x * inverse).round_half_away_tame(),
        #[inline(always)]
        |x, _, inverse| (x * inverse).round_half_away(),
    )
}

/// Levels from floats, their minimum and the inverse scale; by `tame` where scale and inverse are
/// finite, since the levels are then as small as they should be.
#[inline(always)]
fn levels<S: Simd, const N: usize>(
    simd: S,
    x: &[[f32; N]],
    (scale, min): (&[f32; BATCH], &[f32; BATCH]),
    tame: impl Fn(Lanes<S, 1>, Lanes<S, 1>, Lanes<S, 1>) -> Lanes<S, 1>,
    wild: impl Fn(Lanes<S, 1>, Lanes<S, 1>, Lanes<S, 1>) -> Lanes<S, 1>,
) -> Plain<N> {
    let mut found = Plain { scale: [[0; 2]; BATCH], min: [[0; 2]; BATCH], levels: [[0; N]; BATCH] };
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
                |x| tame(x, min, inverse),
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
        *half = halves::from_f32(scale).to_le_bytes();
    }
    for (half, &min) in found.min.iter_mut().zip(min) {
        *half = halves::from_f32(min).to_le_bytes();
    }
    found
}

/// [`extreme`] of finite numbers, without one having to wait for the one before.
#[inline(always)]
fn extreme_of_finite<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> f32 {
    let (min, max) = lanes::range(simd, x);
    if max > -min {
        max
    } else if -min > max {
        min
    } else {
        extreme(x)
    }
}

/// [`range`] of finite numbers. Of zeros the first counts, which shows in the sign of the minimum.
#[inline(always)]
fn range_of_finite<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> (f32, f32) {
    let (min, max) = lanes::range(simd, x);
    if min == 0.0 { range(x) } else { (min, max) }
}
