//! Row kernels for few tokens; sums of sixteen rows are reduced together.
#![expect(clippy::needless_range_loop, reason = "tokens and rows count through several arrays")]

use std::arch::x86_64::{__m128i, __m256, __m256i};
use std::marker::PhantomData;

use gguf_quant::integers::{Block, IntegerBlock, UnpackedBlock};
use pulp::{NullaryFnOnce, cast};

use super::super::quantized::{Epilogue, Pairs, Quantized};
use super::super::reduce::{sum_eight, sum_eight_halves, sum_halves, transpose};
use super::super::{FEW, LANES, blocks};
use super::dots::{self, BlockActivations};
use super::scales::scales_of;
use crate::simd::V3F16c;

/// Returns the additional data that row kernels read.
pub(in super::super) fn epilogue<F: IntegerBlock>() -> Epilogue {
    if F::LEN == 32 || F::HAS_PAIRED { Epilogue::Pairs } else { Epilogue::None }
}

/// Rows of weights with a few rows of activations. A struct instead of a closure: only code that is inlined into
/// `vectorize` is compiled for AVX2.
pub(in super::super) struct Rows<'r, F> {
    pub simd: V3F16c,
    pub weights: &'r [u8],
    pub x: &'r Quantized,
    pub out: &'r mut [f32],
    pub of: PhantomData<fn() -> F>,
}

impl<F: IntegerBlock> NullaryFnOnce for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, weights, x, out, .. } = self;
        match x.rows {
            1 => rows::<F, 1>(simd, weights, x, out),
            _ => rows::<F, FEW>(simd, weights, x, out),
        }
    }
}

/// Multiplies rows of weights by up to `T` rows of activations; the last one stands in for missing ones.
#[inline(always)]
fn rows<F: IntegerBlock, const T: usize>(
    simd: V3F16c,
    weights: &[u8],
    x: &Quantized,
    out: &mut [f32],
) {
    let tokens = if T == 1 { 1 } else { x.rows };
    let row_bytes = blocks::<F>(x) * F::BYTES;
    let eights = blocks::<F>(x).div_ceil(8);
    let mut parts = vec![[simd.avx._mm256_setzero_ps(); T]; LANES * eights];
    let mut eight = Eight::<T>::new(simd);
    for (weights, out) in weights.chunks(LANES * row_bytes).zip(out.chunks_mut(LANES * tokens)) {
        let rows = weights.chunks_exact(row_bytes).zip(parts.chunks_exact_mut(eights));
        for (row, parts) in rows {
            if F::LEN == 256 {
                large::<F, T>(simd, F::Block::all(row), x, &mut eight, parts);
            } else {
                small::<F, T>(simd, F::Block::all(row), x, parts);
            }
        }
        for t in 0..tokens {
            let sums: [f32; LANES] = cast(sum_rows(simd, &parts, t, blocks::<F>(x)));
            for (out, sum) in out.chunks_exact_mut(tokens).zip(sums) {
                out[t] = sum;
            }
        }
    }
}

/// Sums of eight blocks of 256 with `T` rows of activations, before the reduction.
struct Eight<const T: usize> {
    level_sums: [[__m256i; 8]; T],
    /// Sums of minimums in groups of 16.
    minimum_sums: [[__m256i; 8]; T],
    /// Sums of minimums in groups of 32.
    minimum_sums_32: [[__m128i; 8]; T],
    /// Scales of types that do not store them in FP16.
    scales: [f32; 8],
}

impl<const T: usize> Eight<T> {
    #[inline(always)]
    fn new(simd: V3F16c) -> Self {
        Self {
            level_sums: [[simd.avx._mm256_setzero_si256(); 8]; T],
            minimum_sums: [[simd.avx._mm256_setzero_si256(); 8]; T],
            minimum_sums_32: [[simd.sse2._mm_setzero_si128(); 8]; T],
            scales: [0.0; 8],
        }
    }
}

/// Computes the parts of the blocks of 256 of a row, eight at a time.
#[inline(always)]
fn large<F: IntegerBlock, const T: usize>(
    simd: V3F16c,
    weights: &[F::Block],
    x: &Quantized,
    eight: &mut Eight<T>,
    result: &mut [[__m256; T]],
) {
    let (of_32, of_16) = (x.blocks::<8>(), x.blocks::<16>());
    let tokens = if T == 1 { 1 } else { x.rows };
    let places = dots::places_of::<F>();
    for (n, (blocks, result)) in weights.chunks(8).zip(result).enumerate() {
        for (b, block) in blocks.iter().enumerate() {
            prefetch(simd, std::slice::from_ref(block));
            let mut unpacked = UnpackedBlock::EMPTY;
            if F::HAS_PAIRED {
                F::unpack_paired(*simd, block, &mut unpacked);
            } else {
                F::unpack(*simd, block, &mut unpacked);
            }
            if F::F16_OFFSET.is_none() {
                eight.scales[b] = unpacked.d;
            }
            let mut x_blocks = [BlockActivations { levels: &[0; 256], magnitudes: &[0; 256] }; T];
            for t in 0..T {
                let at = (8 * n + b) * tokens + t.min(tokens - 1);
                if F::HAS_PAIRED {
                    let Pairs { levels, magnitudes, .. } = &x.pairs()[at];
                    x_blocks[t] = BlockActivations { levels, magnitudes };
                } else {
                    x_blocks[t].levels = &of_32.levels[at];
                }
            }
            let sums = dots::scaled::<F, T>(simd, places, &unpacked, x_blocks);
            for t in 0..T {
                let at = (8 * n + b) * tokens + t.min(tokens - 1);
                let mut sum = sums[t];
                if F::MINIMUMS && F::GROUP == 32 {
                    let few = times_eight(simd, &unpacked.minimums, &of_32.sums[at]);
                    eight.minimum_sums_32[t][b] = few;
                } else if F::MINIMUMS {
                    let (m, sums) = (cast(unpacked.minimums), cast(of_16.sums[at]));
                    eight.minimum_sums[t][b] = simd.avx2._mm256_madd_epi16(m, sums);
                } else if F::ZERO != 0 {
                    let zero_sums = if F::GROUP == 32 {
                        let few = times_eight(simd, &unpacked.scales, &of_32.sums[at]);
                        simd.avx._mm256_zextsi128_si256(few)
                    } else {
                        let (s, sums) = (cast(unpacked.scales), cast(of_16.sums[at]));
                        simd.avx2._mm256_madd_epi16(s, sums)
                    };
                    sum = simd.avx2._mm256_sub_epi32(sum, times_zero::<F>(simd, zero_sums));
                }
                eight.level_sums[t][b] = sum;
            }
        }
        let [d, dmin] = match (F::F16_OFFSET, blocks.as_array()) {
            (Some(at), Some(blocks)) => scales_of::<F>(simd, blocks, at),
            (Some(at), None) => scales_of::<F>(simd, &filled(blocks), at),
            (None, _) => [cast(eight.scales), simd.avx._mm256_setzero_ps()],
        };
        for t in 0..T {
            let x_d = x.eight_scales(t.min(x.rows - 1), 8 * n);
            let level_sums = sum_eight(simd, &eight.level_sums[t]);
            let minimum_sums = match (F::MINIMUMS, F::GROUP) {
                (false, _) => simd.avx._mm256_setzero_si256(),
                (true, 32) => sum_eight_halves(simd, &eight.minimum_sums_32[t]),
                (true, _) => sum_eight(simd, &eight.minimum_sums[t]),
            };
            result[t] = parts::<F>(simd, level_sums, minimum_sums, d, dmin, cast(x_d));
        }
    }
}

/// Multiplies the first eight numbers by others.
#[inline(always)]
fn times_eight(simd: V3F16c, factors: &[i16; 16], others: &[i16; 8]) -> __m128i {
    let factors: [i16; 8] = *factors.first_chunk().expect("there are 16");
    simd.sse2._mm_madd_epi16(cast(factors), cast(*others))
}

/// Returns the correction for the level `ZERO`, from the sums of activations.
#[inline(always)]
fn times_zero<F: IntegerBlock>(simd: V3F16c, sums: __m256i) -> __m256i {
    let zero = simd.avx._mm256_set1_epi32(i32::from(F::ZERO));
    simd.avx2._mm256_mullo_epi32(sums, zero)
}

/// Computes the parts of the blocks of 32 of a row, eight at a time.
#[inline(always)]
fn small<F: IntegerBlock, const T: usize>(
    simd: V3F16c,
    weights: &[F::Block],
    x: &Quantized,
    result: &mut [[__m256; T]],
) {
    let (eights, rest) = weights.as_chunks::<8>();
    for (n, (weights, result)) in eights.iter().zip(&mut *result).enumerate() {
        prefetch(simd, weights);
        *result = few::<F, T>(simd, weights, x, n);
    }
    if let (false, Some(result)) = (rest.is_empty(), result.last_mut()) {
        *result = few::<F, T>(simd, &filled(rest), x, eights.len());
    }
}

/// Returns eight of one to eight blocks: the last one stands in for missing ones, whose activations are 0.
#[inline(always)]
fn filled<B: Copy>(blocks: &[B]) -> [B; 8] {
    std::array::from_fn(
        #[inline(always)]
        |b| blocks[b.min(blocks.len() - 1)],
    )
}

/// Returns the parts of eight blocks.
#[inline(always)]
fn few<F: IntegerBlock, const T: usize>(
    simd: V3F16c,
    weights: &[F::Block; 8],
    x: &Quantized,
    n: usize,
) -> [__m256; T] {
    let tokens = if T == 1 { 1 } else { x.rows };
    let pairs = x.pairs();
    let x_blocks: [_; T] = std::array::from_fn(
        #[inline(always)]
        |t| &pairs[n * tokens + t.min(tokens - 1)],
    );
    let mut products = [[simd.avx._mm256_setzero_si256(); 4]; T];
    for pair in 0..4 {
        let levels = F::unpack_two(*simd, [&weights[pair], &weights[pair + 4]]);
        for t in 0..T {
            products[t][pair] = dots::quarters::<F>(simd, &levels, x_blocks[t], pair);
        }
    }
    let [d, dmin] = match F::F16_OFFSET {
        Some(at) => scales_of::<F>(simd, weights, at),
        None => {
            let mut scales = [0.0; 8];
            for (scale, block) in scales.iter_mut().zip(weights) {
                let mut unpacked = UnpackedBlock::EMPTY;
                F::unpack(*simd, block, &mut unpacked);
                *scale = unpacked.d;
            }
            [cast(scales), simd.avx._mm256_setzero_ps()]
        }
    };
    let mut result = [simd.avx._mm256_setzero_ps(); T];
    for t in 0..T {
        let mut level_sums = sum_halves(simd, &products[t]);
        let minimum_sums = simd.avx2._mm256_cvtepi16_epi32(cast(x_blocks[t].sums));
        if !F::MINIMUMS && F::ZERO != 0 {
            let zero_sums = times_zero::<F>(simd, minimum_sums);
            level_sums = simd.avx2._mm256_sub_epi32(level_sums, zero_sums);
        }
        result[t] = parts::<F>(simd, level_sums, minimum_sums, d, dmin, cast(x_blocks[t].scales));
    }
    result
}

/// Returns the part of each of eight blocks.
#[inline(always)]
fn parts<F: IntegerBlock>(
    simd: V3F16c,
    level_sums: __m256i,
    minimum_sums: __m256i,
    d: __m256,
    dmin: __m256,
    x_d: __m256,
) -> __m256 {
    let d = simd.avx._mm256_mul_ps(d, x_d);
    let parts = simd.avx._mm256_mul_ps(d, simd.avx._mm256_cvtepi32_ps(level_sums));
    if !F::MINIMUMS {
        return parts;
    }
    let dmin = simd.avx._mm256_mul_ps(dmin, x_d);
    let less = simd.avx._mm256_mul_ps(dmin, simd.avx._mm256_cvtepi32_ps(minimum_sums));
    simd.avx._mm256_sub_ps(parts, less)
}

/// Sums the parts of the blocks of rows in order. `parts` has those of a row by eights, then of the next. Eight
/// rows form a vector; two vectors are summed at a time, to hide latency.
#[inline(always)]
fn sum_rows<const T: usize>(
    simd: V3F16c,
    parts: &[[__m256; T]],
    t: usize,
    blocks: usize,
) -> [__m256; 2] {
    let eights = parts.len() / LANES;
    let mut sums = [simd.avx._mm256_setzero_ps(); 2];
    for n in 0..eights {
        for (h, sum) in sums.iter_mut().enumerate() {
            let mut of_rows = [*sum; 8];
            for (r, of_row) in of_rows.iter_mut().enumerate() {
                *of_row = parts[(8 * h + r) * eights + n][t];
            }
            let parts = transpose(simd, of_rows);
            if blocks - 8 * n >= 8 {
                for part in parts {
                    *sum = simd.avx._mm256_add_ps(*sum, part);
                }
            } else {
                for part in &parts[..blocks - 8 * n] {
                    *sum = simd.avx._mm256_add_ps(*sum, *part);
                }
            }
        }
    }
    sums
}

/// Prefetches weights a few blocks ahead.
#[inline(always)]
fn prefetch<B>(simd: V3F16c, weights: &[B]) {
    const AHEAD: usize = 3072;
    let ahead = weights.as_ptr().cast::<i8>().wrapping_add(AHEAD);
    for line in (0..size_of_val(weights)).step_by(64) {
        simd.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(ahead.wrapping_add(line));
    }
}
