//! Row by row of weights: for few tokens.
#![expect(clippy::needless_range_loop, reason = "tokens and rows count through several arrays")]

use std::arch::aarch64::{float32x4_t, int16x8_t, int32x4_t, uint32x4_t};

use gguf_quant::integers::{Integers, Unpacked};
use pulp::cast;

use super::super::blocks;
use super::super::rounded::{PIECE, Rounded};
use crate::neon::NeonDot;

/// Rows of weights with up to `T` rows of activations: of fewer, the last stands in for the others.
#[inline(always)]
pub(super) fn rows<F: Integers, const T: usize>(
    simd: NeonDot,
    weights: &[u8],
    x: &Rounded,
    out: &mut [f32],
) {
    let row_bytes = blocks::<F>(x) * F::BYTES;
    for (weights, out) in weights.chunks_exact(row_bytes).zip(out.chunks_exact_mut(x.rows)) {
        let made = if F::LEN == 256 {
            large::<F, T>(simd, weights, x)
        } else {
            small::<F, T>(simd, weights, x)
        };
        out.copy_from_slice(&made[..x.rows]);
    }
}

/// A row of blocks of 256.
#[inline(always)]
fn large<F: Integers, const T: usize>(simd: NeonDot, weights: &[u8], x: &Rounded) -> [f32; T] {
    let mut made = [0.0; T];
    let (of_32, of_16) = (x.blocks::<8>(), x.blocks::<16>());
    for (b, block) in weights.chunks_exact(F::BYTES).enumerate() {
        let mut unpacked = Unpacked::EMPTY;
        F::unpack(simd.base(), block, &mut unpacked);
        let mut at = [0; T];
        let mut levels: [&[[i8; 16]]; T] = [&[]; T];
        for t in 0..T {
            at[t] = b * x.rows + t.min(x.rows - 1);
            levels[t] = of_32.levels[at[t]].as_chunks().0;
        }
        let scales = wide(simd, &unpacked.scales);
        let mut sums = [simd.neon.vdupq_n_s32(0); T];
        let groups = unpacked.levels.as_chunks::<16>().0.chunks_exact(F::GROUP / 16);
        for (g, group) in groups.enumerate() {
            let mut products = [simd.neon.vdupq_n_s32(0); T];
            for (n, weights) in group.iter().enumerate() {
                for t in 0..T {
                    let levels = cast(levels[t][g * F::GROUP / 16 + n]);
                    products[t] = simd.dot(products[t], cast(*weights), levels);
                }
            }
            for t in 0..T {
                sums[t] = simd.neon.vmlaq_n_s32(sums[t], products[t], scales[g]);
            }
        }
        let [d, dmin] = scales_of::<F>(simd, &unpacked);
        for t in 0..T {
            let mut of_levels = simd.neon.vaddvq_s32(sums[t]);
            let mut of_minimums = 0;
            if F::MINIMUMS || F::ZERO != 0 {
                let m = if F::MINIMUMS { &unpacked.minimums } else { &unpacked.scales };
                of_minimums = if F::GROUP == 32 {
                    times(simd, m, &of_32.sums[at[t]])
                } else {
                    times(simd, m, &of_16.sums[at[t]])
                };
            }
            let x_d = of_32.scales[at[t]];
            if !F::MINIMUMS {
                of_levels -= i32::from(F::ZERO) * of_minimums;
            }
            let part = d * x_d * of_levels as f32;
            made[t] += if F::MINIMUMS { part - dmin * x_d * of_minimums as f32 } else { part };
        }
    }
    made
}

/// `d` and `dmin` of a block.
#[inline(always)]
fn scales_of<F: Integers>(simd: NeonDot, block: &Unpacked) -> [f32; 2] {
    if !F::HALVES {
        return [block.d, block.dmin];
    }
    let [d, dmin] = block.halves;
    let [d, dmin, ..]: [f32; 4] = cast(simd.floats(cast([d, dmin, 0, 0])));
    [d, dmin]
}

/// Numbers of 16 bits in 32.
#[inline(always)]
fn wide(simd: NeonDot, numbers: &[i16; 16]) -> [i32; 16] {
    let [a, b]: [int16x8_t; 2] = cast(*numbers);
    let low = |half| simd.neon.vmovl_s16(simd.neon.vget_low_s16(half));
    cast([low(a), simd.neon.vmovl_high_s16(a), low(b), simd.neon.vmovl_high_s16(b)])
}

/// The sum of the products of numbers with as many of the others as there are.
#[inline(always)]
fn times<const N: usize>(simd: NeonDot, others: &[i16; 16], numbers: &[i16; N]) -> i32 {
    let mut sum = simd.neon.vdupq_n_s32(0);
    for (a, b) in numbers.as_chunks::<8>().0.iter().zip(others.as_chunks::<8>().0) {
        let (a, b): (int16x8_t, int16x8_t) = (cast(*a), cast(*b));
        sum = simd.neon.vmlal_s16(sum, simd.neon.vget_low_s16(a), simd.neon.vget_low_s16(b));
        sum = simd.neon.vmlal_high_s16(sum, a, b);
    }
    simd.neon.vaddvq_s32(sum)
}

/// A row of blocks of 32, eight at a time.
#[inline(always)]
fn small<F: Integers, const T: usize>(simd: NeonDot, weights: &[u8], x: &Rounded) -> [f32; T] {
    let mut made = [0.0; T];
    for (eight, weights) in weights.chunks(8 * F::BYTES).enumerate() {
        let low = four::<F, T>(simd, weights, x, PIECE * eight, 0);
        let high = four::<F, T>(simd, weights, x, PIECE * eight, 4);
        for t in 0..T {
            let four = simd.neon.vaddq_f32(low[t], high[t]);
            let (low, high) = (simd.neon.vget_low_f32(four), simd.neon.vget_high_f32(four));
            let [a, b]: [f32; 2] = cast(simd.neon.vadd_f32(low, high));
            made[t] += a + b;
        }
    }
    made
}

/// What each of four blocks from `first` on adds, of up to eight that begin at a column: 0 for those
/// that there are not.
#[inline(always)]
fn four<F: Integers, const T: usize>(
    simd: NeonDot,
    weights: &[u8],
    x: &Rounded,
    column: usize,
    first: usize,
) -> [float32x4_t; T] {
    let zero = simd.neon.vdupq_n_s32(0);
    let count = weights.len() / F::BYTES;
    let mut levels: [&[[[i8; 16]; 2]]; T] = [&[]; T];
    for t in 0..T {
        let of_x = x.levels(t.min(x.rows - 1), column, 32 * count);
        levels[t] = of_x.as_chunks().0.as_chunks().0;
    }
    let mut products = [[zero; 4]; T];
    let mut halves = [[0; 4]; 2];
    let mut floats = [[0.0; 4]; 2];
    for b in 0..4 {
        let Some(block) = weights.get((first + b) * F::BYTES..(first + b + 1) * F::BYTES) else {
            continue;
        };
        let mut unpacked = Unpacked::EMPTY;
        F::unpack(simd.base(), block, &mut unpacked);
        if F::HALVES {
            (halves[0][b], halves[1][b]) = (unpacked.halves[0], unpacked.halves[1]);
        } else {
            (floats[0][b], floats[1][b]) = (unpacked.d, unpacked.dmin);
        }
        let weights: &[[u8; 16]; 2] =
            unpacked.levels.as_chunks().0.first_chunk().expect("32 are fewer than 256");
        for t in 0..T {
            let [low, high] = levels[t][first + b];
            let product = simd.dot(zero, cast(weights[0]), cast(low));
            products[t][b] = simd.dot(product, cast(weights[1]), cast(high));
        }
    }
    let [d, dmin] = if F::HALVES {
        halves.map(
            #[inline(always)]
            |halves| simd.floats(cast(halves)),
        )
    } else {
        cast(floats)
    };
    let mut made = [simd.neon.vdupq_n_f32(0.0); T];
    for t in 0..T {
        let (x_d, sums) = x.eight(t.min(x.rows - 1), column);
        let x_d: [f32; 4] = *x_d[first..].first_chunk().expect("half of eight are four");
        let sums: [i16; 4] = *sums[first..].first_chunk().expect("half of eight are four");
        let sums = simd.neon.vmovl_s16(cast(sums));
        let mut of_levels = sum_four(simd, products[t]);
        if !F::MINIMUMS && F::ZERO != 0 {
            of_levels = simd.neon.vmlsq_n_s32(of_levels, sums, i32::from(F::ZERO));
        }
        let mut parts = scaled(simd, d, cast(x_d), of_levels);
        if F::MINIMUMS {
            parts = simd.neon.vsubq_f32(parts, scaled(simd, dmin, cast(x_d), sums));
        }
        made[t] = if first + 4 <= count { parts } else { before(simd, parts, count, first) };
    }
    made
}

/// Sums times the scales of weights and activations.
#[inline(always)]
pub(super) fn scaled(
    simd: NeonDot,
    d: float32x4_t,
    x_d: float32x4_t,
    sums: int32x4_t,
) -> float32x4_t {
    let d = simd.neon.vmulq_f32(d, x_d);
    simd.neon.vmulq_f32(d, simd.neon.vcvtq_f32_s32(sums))
}

/// Four numbers from `first` on, without those from `count` on.
#[inline(always)]
fn before(simd: NeonDot, numbers: float32x4_t, count: usize, first: usize) -> float32x4_t {
    let places: uint32x4_t = cast([0, 1, 2, 3].map(|place| (first + place) as u32));
    let wanted = simd.neon.vcltq_u32(places, simd.neon.vdupq_n_u32(count as u32));
    cast(simd.neon.vandq_u32(cast(numbers), wanted))
}

/// The sum of each of four vectors.
#[inline(always)]
fn sum_four(simd: NeonDot, v: [int32x4_t; 4]) -> int32x4_t {
    let pairs = [simd.neon.vpaddq_s32(v[0], v[1]), simd.neon.vpaddq_s32(v[2], v[3])];
    simd.neon.vpaddq_s32(pairs[0], pairs[1])
}
