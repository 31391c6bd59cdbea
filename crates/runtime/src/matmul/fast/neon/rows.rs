//! Row kernels for few tokens.
#![expect(clippy::needless_range_loop, reason = "tokens and rows count through several arrays")]

use std::arch::aarch64::{float32x4_t, int16x8_t, int32x4_t};

use gguf_quant::integers::{Block, IntegerBlock, UnpackedBlock};
use pulp::cast;

use super::super::blocks;
use super::super::quantized::Quantized;
use crate::neon::NeonDot;

/// Multiplies rows of weights by up to `T` rows of activations; the last one stands in for missing ones.
#[inline(always)]
pub(super) fn rows<F: IntegerBlock, const T: usize>(
    simd: NeonDot,
    weights: &[u8],
    x: &Quantized,
    out: &mut [f32],
) {
    let row_bytes = blocks::<F>(x) * F::BYTES;
    for (weights, out) in weights.chunks_exact(row_bytes).zip(out.chunks_exact_mut(x.rows)) {
        let result = if F::LEN == 256 {
            large::<F, T>(simd, weights, x)
        } else {
            small::<F, T>(simd, weights, x)
        };
        out.copy_from_slice(&result[..x.rows]);
    }
}

/// Multiplies a row of blocks of 256.
#[inline(always)]
fn large<F: IntegerBlock, const T: usize>(
    simd: NeonDot,
    weights: &[u8],
    x: &Quantized,
) -> [f32; T] {
    let mut result = [0.0; T];
    let (of_32, of_16) = (x.blocks::<8>(), x.blocks::<16>());
    for (b, block) in F::Block::all(weights).iter().enumerate() {
        let mut unpacked = UnpackedBlock::EMPTY;
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
            let mut level_sums = simd.neon.vaddvq_s32(sums[t]);
            let mut minimum_sums = 0;
            if F::MINIMUMS || F::ZERO != 0 {
                let m = if F::MINIMUMS { &unpacked.minimums } else { &unpacked.scales };
                minimum_sums = if F::GROUP == 32 {
                    times(simd, m, &of_32.sums[at[t]])
                } else {
                    times(simd, m, &of_16.sums[at[t]])
                };
            }
            let x_d = x.scales(t.min(x.rows - 1), 256 * b, 256)[0];
            if !F::MINIMUMS {
                level_sums -= i32::from(F::ZERO) * minimum_sums;
            }
            let part = d * x_d * level_sums as f32;
            result[t] += if F::MINIMUMS { part - dmin * x_d * minimum_sums as f32 } else { part };
        }
    }
    result
}

/// Returns `d` and `dmin` of a block.
#[inline(always)]
fn scales_of<F: IntegerBlock>(simd: NeonDot, block: &UnpackedBlock) -> [f32; 2] {
    if F::F16_OFFSET.is_none() {
        return [block.d, block.dmin];
    }
    let [d, dmin] = block.f16_scales;
    let [d, dmin, ..]: [f32; 4] = cast(simd.floats(cast([d, dmin, 0, 0])));
    [d, dmin]
}

/// Widens numbers of 16 bits to 32.
#[inline(always)]
fn wide(simd: NeonDot, numbers: &[i16; 16]) -> [i32; 16] {
    let [a, b]: [int16x8_t; 2] = cast(*numbers);
    let low = |half| simd.neon.vmovl_s16(simd.neon.vget_low_s16(half));
    cast([low(a), simd.neon.vmovl_high_s16(a), low(b), simd.neon.vmovl_high_s16(b)])
}

/// Returns the dot product of two slices, up to the shorter length.
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

/// Multiplies a row of blocks of 32, four at a time.
#[inline(always)]
fn small<F: IntegerBlock, const T: usize>(
    simd: NeonDot,
    weights: &[u8],
    x: &Quantized,
) -> [f32; T] {
    let mut result = [0.0; T];
    for (n, blocks) in F::Block::all(weights).chunks(4).enumerate() {
        let parts = four::<F, T>(simd, blocks, x, 128 * n);
        for t in 0..T {
            let parts: [f32; 4] = cast(parts[t]);
            parts[..blocks.len()].iter().for_each(|part| result[t] += part);
        }
    }
    result
}

/// Returns the parts of up to four blocks from a column on.
#[inline(always)]
fn four<F: IntegerBlock, const T: usize>(
    simd: NeonDot,
    blocks: &[F::Block],
    x: &Quantized,
    column: usize,
) -> [float32x4_t; T] {
    let zero = simd.neon.vdupq_n_s32(0);
    let len = 32 * blocks.len();
    let mut levels: [&[[[i8; 16]; 2]]; T] = [&[]; T];
    for t in 0..T {
        let x_blocks = x.levels(t.min(x.rows - 1), column, len);
        levels[t] = x_blocks.as_chunks().0.as_chunks().0;
    }
    let mut products = [[zero; 4]; T];
    let mut halves = [[0; 4]; 2];
    let mut floats = [[0.0; 4]; 2];
    for b in 0..4 {
        let Some(block) = blocks.get(b) else { continue };
        let mut unpacked = UnpackedBlock::EMPTY;
        F::unpack(simd.base(), block, &mut unpacked);
        if F::F16_OFFSET.is_some() {
            (halves[0][b], halves[1][b]) = (unpacked.f16_scales[0], unpacked.f16_scales[1]);
        } else {
            (floats[0][b], floats[1][b]) = (unpacked.d, unpacked.dmin);
        }
        let weights: &[[u8; 16]; 2] =
            unpacked.levels.as_chunks().0.first_chunk().expect("32 are fewer than 256");
        for t in 0..T {
            let [low, high] = levels[t][b];
            let product = simd.dot(zero, cast(weights[0]), cast(low));
            products[t][b] = simd.dot(product, cast(weights[1]), cast(high));
        }
    }
    let [d, dmin] = if F::F16_OFFSET.is_some() {
        halves.map(
            #[inline(always)]
            |halves| simd.floats(cast(halves)),
        )
    } else {
        cast(floats)
    };
    let mut result = [simd.neon.vdupq_n_f32(0.0); T];
    for t in 0..T {
        let row = t.min(x.rows - 1);
        let (mut x_d, mut sums) = ([0.0; 4], [0; 4]);
        x_d[..blocks.len()].copy_from_slice(x.scales(row, column, len));
        sums[..blocks.len()].copy_from_slice(x.sums(row, column, len));
        let sums = simd.neon.vmovl_s16(cast(sums));
        let mut level_sums = sum_four(simd, products[t]);
        if !F::MINIMUMS && F::ZERO != 0 {
            level_sums = simd.neon.vmlsq_n_s32(level_sums, sums, i32::from(F::ZERO));
        }
        result[t] = scaled(simd, d, cast(x_d), level_sums);
        if F::MINIMUMS {
            result[t] = simd.neon.vsubq_f32(result[t], scaled(simd, dmin, cast(x_d), sums));
        }
    }
    result
}

/// Returns sums times the scales of weights and activations.
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

/// Returns the sum of each of four vectors.
#[inline(always)]
fn sum_four(simd: NeonDot, v: [int32x4_t; 4]) -> int32x4_t {
    let pairs = [simd.neon.vpaddq_s32(v[0], v[1]), simd.neon.vpaddq_s32(v[2], v[3])];
    simd.neon.vpaddq_s32(pairs[0], pairs[1])
}
