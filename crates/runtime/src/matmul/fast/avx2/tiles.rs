//! Tile kernels, with rows in lanes, for many tokens.
#![expect(clippy::needless_range_loop, reason = "tokens and blocks count through several arrays")]

use std::arch::x86_64::{__m256, __m256i};

use gguf_quant::integers::IntegerBlock;
use pulp::cast;

use super::super::quantized::Quantized;
use super::super::tile::{DEPTH, Tile};
use super::super::{ROWS, blocks};
use crate::simd::V3F16c;

/// Tokens of a tile kernel.
const TOKENS: usize = 4;

#[inline(always)]
pub(super) fn tile<F: IntegerBlock>(
    simd: V3F16c,
    weights: &[u8],
    x: &Quantized,
    out: &mut [[f32; ROWS]],
) {
    let blocks = blocks::<F>(x);
    let at_once = DEPTH / F::LEN;
    let mut tile = Box::new(Tile::EMPTY);
    out.fill([0.0; ROWS]);
    let mut first = 0;
    while first < blocks {
        let count = at_once.min(blocks - first);
        tile.unpack::<F>(simd, weights, blocks * F::BYTES, first, count);
        let part = Part { x, tile: &tile, first, count };
        let (all, rest) = out.as_chunks_mut::<TOKENS>();
        for (i, out) in all.iter_mut().enumerate() {
            part.multiply::<F, TOKENS>(simd, TOKENS * i, out);
        }
        let done = TOKENS * all.len();
        for (i, out) in rest.iter_mut().enumerate() {
            part.multiply::<F, 1>(simd, done + i, std::array::from_mut(out));
        }
        first += count;
    }
}

/// Some blocks of all rows, unpacked.
struct Part<'t> {
    x: &'t Quantized,
    tile: &'t Tile,
    /// First block.
    first: usize,
    /// Number of blocks.
    count: usize,
}

/// Sums of `T` tokens, for each half of the rows.
type Sums<const T: usize> = [[__m256i; T]; 2];

impl Part<'_> {
    /// Adds the products with the tokens from `token` on.
    #[inline(always)]
    fn multiply<F: IntegerBlock, const T: usize>(
        &self,
        simd: V3F16c,
        token: usize,
        out: &mut [[f32; ROWS]; T],
    ) {
        let blocks = self.x.width / F::LEN;
        debug_assert!(self.first + self.count <= blocks);
        let (from, len) = (self.first * F::LEN, self.count * F::LEN);
        let (mut d, mut sums): ([&[f32]; T], [&[i16]; T]) = ([&[]; T], [&[]; T]);
        for t in 0..T {
            d[t] = self.x.scales(token + t, from, len);
            sums[t] = self.x.sums(token + t, from, len);
        }
        let mut x: [&[[i8; 32]]; T] = [&[]; T];
        for t in 0..T {
            x[t] = self.x.levels(token + t, from, len).as_chunks().0;
        }
        if F::LEN == 256 {
            let mut result = [[simd.avx._mm256_setzero_si256(); T]; 2];
            for n in 0..8 {
                add_products::<F, T>(simd, self.tile, n, x, &mut result);
            }
            self.put::<F, T>(simd, 0, result, d, sums, out);
        } else {
            for n in 0..self.count {
                let mut result = [[simd.avx._mm256_setzero_si256(); T]; 2];
                add_products::<F, T>(simd, self.tile, n, x, &mut result);
                self.put::<F, T>(simd, n, result, d, sums, out);
            }
        }
    }

    /// Scales and adds the sums of a block.
    #[inline(always)]
    fn put<F: IntegerBlock, const T: usize>(
        &self,
        simd: V3F16c,
        block: usize,
        level_sums: Sums<T>,
        d: [&[f32]; T],
        sums: [&[i16]; T],
        out: &mut [[f32; ROWS]; T],
    ) {
        for t in 0..T {
            let x_d = simd.avx._mm256_set1_ps(d[t][block]);
            let halves: &mut [[f32; 8]; 2] = cast_halves(&mut out[t]);
            for half in 0..2 {
                let mut level_sums = level_sums[half][t];
                let mut minimum_sums = simd.avx._mm256_setzero_si256();
                if F::MINIMUMS || F::ZERO != 0 {
                    minimum_sums = self.minimums::<F>(simd, block, half, sums[t]);
                }
                if !F::MINIMUMS {
                    level_sums = simd.avx2._mm256_sub_epi32(level_sums, minimum_sums);
                }
                let mut part = scaled(simd, &self.tile.d[block], half, x_d, level_sums);
                if F::MINIMUMS {
                    let less = scaled(simd, &self.tile.dmin[block], half, x_d, minimum_sums);
                    part = simd.avx._mm256_sub_ps(part, less);
                }
                halves[half] = cast(simd.avx._mm256_add_ps(cast(halves[half]), part));
            }
        }
    }

    /// Returns the correction for minimums or for a nonzero level of 0.
    #[inline(always)]
    fn minimums<F: IntegerBlock>(
        &self,
        simd: V3F16c,
        block: usize,
        half: usize,
        sums: &[i16],
    ) -> __m256i {
        if F::LEN == 32 {
            let factor = if F::MINIMUMS { 1 } else { i32::from(F::ZERO) };
            return simd.avx._mm256_set1_epi32(factor * i32::from(sums[block]));
        }
        let mut result = simd.avx._mm256_setzero_si256();
        let pairs = self.tile.minimums.iter().zip(sums.as_chunks::<2>().0);
        for (minimums, sums) in pairs.take(128 / F::GROUP) {
            let sums = simd.avx._mm256_set1_epi32(cast(*sums));
            let minimums = vector(minimums.as_flattened(), half);
            let product = simd.avx2._mm256_madd_epi16(minimums, sums);
            result = simd.avx2._mm256_add_epi32(result, product);
        }
        result
    }
}

/// Returns sums times the scales of weights and activations.
#[inline(always)]
fn scaled(simd: V3F16c, d: &[f32; ROWS], half: usize, x_d: __m256, sums: __m256i) -> __m256 {
    let d: [f32; 8] = *d[8 * half..].first_chunk().expect("half of 16 are 8");
    let d = simd.avx._mm256_mul_ps(cast(d), x_d);
    simd.avx._mm256_mul_ps(d, simd.avx._mm256_cvtepi32_ps(sums))
}

#[inline(always)]
fn cast_halves(row: &mut [f32; ROWS]) -> &mut [[f32; 8]; 2] {
    pulp::bytemuck::cast_mut(row)
}

/// Returns eight pairs of 16 bits.
#[inline(always)]
fn vector(numbers: &[i16], half: usize) -> __m256i {
    let numbers: [i16; 16] = *numbers[16 * half..].first_chunk().expect("half of 32 are 16");
    cast(numbers)
}

/// Adds the products of 32 columns from `32 n` on.
#[inline(always)]
fn add_products<F: IntegerBlock, const T: usize>(
    simd: V3F16c,
    tile: &Tile,
    n: usize,
    x: [&[[i8; 32]]; T],
    sums: &mut Sums<T>,
) {
    let mut fours: [&[[i8; 4]; 8]; T] = [&[[0; 4]; 8]; T];
    for t in 0..T {
        fours[t] = pulp::bytemuck::cast_ref(&x[t][n]);
    }
    if F::MAX_LEVEL.is_some() {
        unsigned::<F, T>(simd, tile, n, fours, sums);
    } else {
        signed::<F, T>(simd, tile, n, fours, sums);
    }
}

/// Adds the products of 32 columns from `32 n` on, with unsigned levels: in 16 bits while they fit, then with
/// their scales in 32 bits.
#[inline(always)]
fn unsigned<F: IntegerBlock, const T: usize>(
    simd: V3F16c,
    tile: &Tile,
    n: usize,
    x: [&[[i8; 4]; 8]; T],
    sums: &mut Sums<T>,
) {
    let columns: &[[[u8; 4]; ROWS]; 8] =
        tile.narrow[8 * n..].first_chunk().expect("there are 8 for each 32 columns");
    // Two products of factors up to 127 and `TOP`.
    let top = F::MAX_LEVEL.map_or(127, i32::from);
    let most = (i32::from(i16::MAX) / (2 * 127 * top)) as usize;
    let most = most.min(F::GROUP / 4).min(8);
    let most = match most {
        8.. => 8,
        4.. => 4,
        2.. => 2,
        _ => 1,
    };
    let mut first = 0;
    while first < 8 {
        let mut result = [[simd.avx._mm256_setzero_si256(); T]; 2];
        for k in first..first + most {
            let column: &[[u8; 32]; 2] = pulp::bytemuck::cast_ref(&columns[k]);
            let w: [__m256i; 2] = [cast(column[0]), cast(column[1])];
            for t in 0..T {
                let a = simd.avx._mm256_set1_epi32(cast(x[t][k]));
                for half in 0..2 {
                    let product = simd.avx2._mm256_maddubs_epi16(w[half], a);
                    result[half][t] = if k == first {
                        product
                    } else {
                        simd.avx2._mm256_add_epi16(result[half][t], product)
                    };
                }
            }
        }
        for half in 0..2 {
            let scales = scales::<F>(simd, tile, 32 * n + 4 * first, half);
            for t in 0..T {
                let scaled = simd.avx2._mm256_madd_epi16(result[half][t], scales);
                sums[half][t] = simd.avx2._mm256_add_epi32(sums[half][t], scaled);
            }
        }
        first += most;
    }
}

/// Adds the products of 32 columns from `32 n` on, with signed levels: their magnitudes times activations with their signs.
#[inline(always)]
fn signed<F: IntegerBlock, const T: usize>(
    simd: V3F16c,
    tile: &Tile,
    n: usize,
    x: [&[[i8; 4]; 8]; T],
    sums: &mut Sums<T>,
) {
    let columns: &[[[u8; 4]; ROWS]; 8] =
        tile.narrow[8 * n..].first_chunk().expect("there are 8 for each 32 columns");
    for first in (0..8).step_by(F::GROUP / 4) {
        let scales = [
            scales::<F>(simd, tile, 32 * n + 4 * first, 0),
            scales::<F>(simd, tile, 32 * n + 4 * first, 1),
        ];
        // With a known number of columns the compiler orders additions as a tree, whose parts do not fit into registers.
        for k in first..first + std::hint::black_box(F::GROUP / 4) {
            let column: &[[u8; 32]; 2] = pulp::bytemuck::cast_ref(&columns[k]);
            for half in 0..2 {
                let w = cast(column[half]);
                let magnitudes = simd.avx2._mm256_abs_epi8(w);
                for t in 0..T {
                    let a = simd.avx._mm256_set1_epi32(cast(x[t][k]));
                    let a = simd.avx2._mm256_sign_epi8(a, w);
                    let products = simd.avx2._mm256_maddubs_epi16(magnitudes, a);
                    let scaled = simd.avx2._mm256_madd_epi16(products, scales[half]);
                    sums[half][t] = simd.avx2._mm256_add_epi32(sums[half][t], scaled);
                }
            }
        }
    }
}

/// Returns the scales of the group of a column, twice for each row of a half.
#[inline(always)]
fn scales<F: IntegerBlock>(simd: V3F16c, tile: &Tile, column: usize, half: usize) -> __m256i {
    if F::LEN == 32 {
        simd.avx._mm256_set1_epi16(1)
    } else {
        vector(tile.scales[column / F::GROUP].as_flattened(), half)
    }
}
