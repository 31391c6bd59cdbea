//! Repacked rows with some tokens.

use std::arch::x86_64::{__m512, __m512i};

use pulp::{NullaryFnOnce, cast};

use super::super::ROWS;
use super::super::interleaved::{SomeRows, TOGETHER, interleaved_rows};
use super::super::packed::{QUAD, unit_bytes};
use super::super::quantized::Quantized;
use super::super::tile::DEPTH;
use super::groups::Sums;
use crate::avx512::V4Vnni;
use crate::repack::PackedFormat;

/// Prefetch distance in bytes.
const AHEAD: usize = 12288;

/// Tokens from which on chunks are prefetched. With fewer products per byte, hardware prefetching reaches the speed of
/// plain reading, and prefetching far ahead costs a tenth of it.
const PREFETCH_FROM: usize = 4;

/// Strips with rows of activations: `out` has a row per row of weights.
pub(super) struct Strips<'r> {
    pub simd: V4Vnni,
    pub format: &'r PackedFormat,
    pub strips: &'r [u8],
    pub x: &'r Quantized,
    pub out: &'r mut [f32],
}

impl Strips<'_> {
    /// Multiplies them strip by strip.
    pub fn multiply(self) {
        match (self.format.bits, self.format.is_plain()) {
            (2, true) => self.with_bits::<2, false>(),
            (2, false) => self.with_bits::<2, true>(),
            (3, true) => self.with_bits::<3, false>(),
            (3, false) => self.with_bits::<3, true>(),
            (4, true) => self.with_bits::<4, false>(),
            (4, false) => self.with_bits::<4, true>(),
            (5, _) => self.with_bits::<5, false>(),
            (6, _) => self.with_bits::<6, false>(),
            _ => self.with_bits::<8, false>(),
        }
    }

    fn with_bits<const BITS: usize, const TABLE: bool>(self) {
        let Self { simd, format, mut strips, x, out } = self;
        let tokens = x.rows;
        for out in out.chunks_mut(ROWS * tokens) {
            let mut rest = strips;
            // The strip stays in the first-level cache.
            for first in (0..tokens).step_by(TOGETHER) {
                let strip = Strip { simd, format, x, strips, first, out: &mut *out };
                rest = match (interleaved_rows(tokens - first), format.group) {
                    (1, 16) => strip.multiply::<BITS, TABLE, 1, 1>(),
                    (1, _) => strip.multiply::<BITS, TABLE, 2, 1>(),
                    (2, 16) => strip.multiply::<BITS, TABLE, 1, 2>(),
                    (2, _) => strip.multiply::<BITS, TABLE, 2, 2>(),
                    (4, 16) => strip.multiply::<BITS, TABLE, 1, 4>(),
                    (4, _) => strip.multiply::<BITS, TABLE, 2, 4>(),
                    (_, 16) => strip.multiply::<BITS, TABLE, 1, TOGETHER>(),
                    _ => strip.multiply::<BITS, TABLE, 2, TOGETHER>(),
                };
            }
            strips = rest;
        }
    }
}

/// A strip and those after it, and the first of some tokens.
struct Strip<'r, 'o> {
    simd: V4Vnni,
    format: &'r PackedFormat,
    x: &'r Quantized,
    strips: &'r [u8],
    first: usize,
    /// A row per row of weights.
    out: &'o mut [f32],
}

impl<'r> Strip<'r, '_> {
    /// Multiplies groups of `UNITS` times 16 columns by up to `T` tokens. Returns the strips after it.
    fn multiply<const BITS: usize, const TABLE: bool, const UNITS: usize, const T: usize>(
        self,
    ) -> &'r [u8] {
        self.simd.vectorize(OneStrip::<BITS, TABLE, UNITS, T>(self))
    }
}

/// [`Strip::multiply`]. One function for all parameters would take several times as long to compile.
struct OneStrip<'r, 'o, const BITS: usize, const TABLE: bool, const UNITS: usize, const T: usize>(
    Strip<'r, 'o>,
);

impl<'r, const BITS: usize, const TABLE: bool, const UNITS: usize, const T: usize> NullaryFnOnce
    for OneStrip<'r, '_, BITS, TABLE, UNITS, T>
{
    type Output = &'r [u8];

    #[inline(always)]
    fn call(self) -> &'r [u8] {
        let Strip { simd, format, x, mut strips, first, out } = self.0;
        let table = simd.avx512f._mm512_broadcast_i32x4(cast(format.table));
        let mut sums = [simd.avx512f._mm512_setzero_ps(); T];
        for (p, (columns, bytes)) in format.pieces().enumerate() {
            let (piece, rest) = strips.split_at(bytes);
            strips = rest;
            let piece =
                Piece { simd, format, x, table, column: p * DEPTH, columns, bytes: piece, first };
            if format.len == 256 {
                piece.large::<BITS, TABLE, UNITS, T>(&mut sums);
            } else {
                piece.small::<BITS, TABLE, T>(&mut sums);
            }
        }
        for t in 0..T.min(x.rows - first) {
            let sums: [f32; ROWS] = cast(sums[t]);
            for (out, sum) in out.chunks_exact_mut(x.rows).zip(sums) {
                out[first + t] = sum;
            }
        }
        strips
    }
}

/// A piece and its activations.
struct Piece<'r> {
    simd: V4Vnni,
    format: &'r PackedFormat,
    x: &'r Quantized,
    table: __m512i,
    /// First column.
    column: usize,
    columns: usize,
    bytes: &'r [u8],
    /// First token.
    first: usize,
}

impl<'r> Piece<'r> {
    /// Adds the products of a block of 256.
    #[inline(always)]
    fn large<const BITS: usize, const TABLE: bool, const UNITS: usize, const T: usize>(
        &self,
        out: &mut [__m512; T],
    ) {
        let Self { simd, format, .. } = *self;
        let f = simd.avx512f;
        let x: SomeRows<'_, T> = self.x.some_rows(self.first, self.column, DEPTH);
        // With known lengths the compiler omits bounds checks.
        let levels = &x.levels[..DEPTH / 16];
        let sums = &x.sums.as_chunks::<2>().0.as_chunks::<T>().0[..8 / UNITS];
        let mut level_sums = [f._mm512_setzero_si512(); T];
        // Of minimums, or of scales, whose products with the level of 0 are subtracted.
        let mut minimum_sums = [f._mm512_setzero_si512(); T];
        for (pair, chunk) in self.chunks::<BITS, T>(2 * UNITS).enumerate().take(8 / UNITS) {
            let scales =
                simd.avx512bw._mm512_cvtepi8_epi16(cast(chunk.scales.as_chunks::<32>().0[0]));
            let of_group = [
                f._mm512_srai_epi32::<16>(f._mm512_slli_epi32::<16>(scales)),
                f._mm512_srai_epi32::<16>(scales),
            ];
            let of_units = chunk.levels.split_at(UNITS * unit_bytes(BITS));
            for (g, units) in [of_units.0, of_units.1].into_iter().enumerate() {
                let x = &levels[(2 * pair + g) * UNITS..][..UNITS];
                let result = self.group::<BITS, TABLE, T>(units, x);
                for t in 0..T {
                    let scaled = f._mm512_mullo_epi32(result[t], of_group[g]);
                    level_sums[t] = f._mm512_add_epi32(level_sums[t], scaled);
                }
            }
            let mut minimums = scales;
            if format.minimums {
                let bytes = chunk.minimums.as_chunks::<32>().0[0];
                minimums = simd.avx512bw._mm512_cvtepu8_epi16(cast(bytes));
            }
            for t in 0..T {
                let sums = f._mm512_set1_epi32(cast(sums[pair][t]));
                minimum_sums[t] = simd.add_pairs(minimum_sums[t], minimums, sums);
            }
        }
        if !format.minimums {
            let zero = f._mm512_set1_epi32(i32::from(format.zero));
            for t in 0..T {
                let less = f._mm512_mullo_epi32(minimum_sums[t], zero);
                level_sums[t] = f._mm512_sub_epi32(level_sums[t], less);
            }
        }
        let [d, dmin] = format.head();
        let (d, rest) = self.bytes.split_at(d);
        self.add::<T>([d, &rest[..dmin]], level_sums, minimum_sums, &x.scales[0], out);
    }

    /// Adds the products of blocks of 32.
    #[inline(always)]
    fn small<const BITS: usize, const TABLE: bool, const T: usize>(&self, out: &mut [__m512; T]) {
        let Self { simd, format, columns, .. } = *self;
        let f = simd.avx512f;
        let x: SomeRows<'_, T> = self.x.some_rows(self.first, self.column, columns);
        let levels = x.levels[..columns / 16].as_chunks::<2>().0;
        let sums = x.sums.as_chunks::<T>().0;
        let blocks = self.chunks::<BITS, T>(2).zip(levels).zip(sums.iter().zip(x.scales));
        for ((chunk, levels), (sums, x_d)) in blocks {
            let mut level_sums = self.group::<BITS, TABLE, T>(chunk.levels, levels);
            let mut minimum_sums = [f._mm512_setzero_si512(); T];
            for t in 0..T {
                let sum = i32::from(sums[t]);
                minimum_sums[t] = f._mm512_set1_epi32(sum);
                let less = f._mm512_set1_epi32(sum * i32::from(format.zero));
                level_sums[t] = f._mm512_sub_epi32(level_sums[t], less);
            }
            let scales = [chunk.scales, chunk.minimums];
            self.add::<T>(scales, level_sums, minimum_sums, x_d, out);
        }
    }

    /// Returns the chunks, which have a number of 16 columns each, and prefetches later ones.
    #[inline(always)]
    fn chunks<const BITS: usize, const T: usize>(
        &self,
        units: usize,
    ) -> impl Iterator<Item = Chunk<'r>> + use<'r, BITS, T> {
        let simd = self.simd;
        let [scales, minimums, levels] = self.format.chunk();
        let chunks = &self.bytes[self.format.head().into_iter().sum()..];
        chunks.chunks_exact(scales + minimums + levels).map(
            #[inline(always)]
            move |chunk| {
                if T >= PREFETCH_FROM {
                    let later = chunk.as_ptr().cast::<i8>().wrapping_add(AHEAD);
                    for line in (0..chunk.len()).step_by(64) {
                        let line = later.wrapping_add(line);
                        simd.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line);
                    }
                }
                let (scales, chunk) = chunk.split_at(scales);
                let (minimums, levels) = chunk.split_at(minimums);
                // With a known length the compiler omits bounds checks.
                Chunk { scales, minimums, levels: &levels[..units * unit_bytes(BITS)] }
            },
        )
    }

    /// Returns the products of a group.
    #[inline(always)]
    fn group<const BITS: usize, const TABLE: bool, const T: usize>(
        &self,
        units: &[u8],
        x: &[[[i8; 16]; T]],
    ) -> Sums<T> {
        let simd = self.simd;
        let mut sums = [simd.avx512f._mm512_setzero_si512(); T];
        for (unit, x) in units.chunks_exact(unit_bytes(BITS)).zip(x) {
            let mut weights = levels::<BITS>(simd, unit);
            if TABLE {
                weights = weights.map(
                    #[inline(always)]
                    |weights| simd.avx512bw._mm512_shuffle_epi8(self.table, weights),
                );
            }
            for k in 0..4 {
                for t in 0..T {
                    let x: [i32; 4] = cast(x[t]);
                    let x = simd.avx512f._mm512_set1_epi32(x[k]);
                    sums[t] = simd.add_bytes(sums[t], weights[k], x);
                }
            }
        }
        sums
    }

    /// Scales and adds the sums of a block.
    #[inline(always)]
    fn add<const T: usize>(
        &self,
        [d, dmin]: [&[u8]; 2],
        level_sums: Sums<T>,
        minimum_sums: Sums<T>,
        x_d: &[f32; T],
        out: &mut [__m512; T],
    ) {
        let Self { simd, format, .. } = *self;
        let f = simd.avx512f;
        let d = self.scales(d);
        for t in 0..T {
            let x_d = f._mm512_set1_ps(x_d[t]);
            let mut part =
                f._mm512_mul_ps(f._mm512_mul_ps(d, x_d), f._mm512_cvtepi32_ps(level_sums[t]));
            if format.minimums {
                let dmin = f._mm512_mul_ps(self.scales(dmin), x_d);
                let less = f._mm512_mul_ps(dmin, f._mm512_cvtepi32_ps(minimum_sums[t]));
                part = f._mm512_sub_ps(part, less);
            }
            out[t] = f._mm512_add_ps(out[t], part);
        }
    }

    /// Returns the scales of a block of all rows.
    #[inline(always)]
    fn scales(&self, scales: &[u8]) -> __m512 {
        if self.format.halves {
            self.simd.avx512f._mm512_cvtph_ps(cast(scales.as_chunks::<{ 2 * ROWS }>().0[0]))
        } else {
            cast(scales.as_chunks::<{ 4 * ROWS }>().0[0])
        }
    }
}

/// Parts of a chunk.
struct Chunk<'r> {
    scales: &'r [u8],
    minimums: &'r [u8],
    levels: &'r [u8],
}

/// Returns the levels of 16 columns, or their indices.
#[inline(always)]
fn levels<const BITS: usize>(simd: V4Vnni, bytes: &[u8]) -> [__m512i; 4] {
    let f = simd.avx512f;
    let bytes = &bytes[..unit_bytes(BITS)];
    if BITS == 8 {
        return cast(bytes.as_chunks::<{ 4 * QUAD }>().0[0]);
    }
    let (nibbles, bytes) = bytes.split_at(if BITS & 4 != 0 { 2 * QUAD } else { 0 });
    let (pairs, ones) = bytes.split_at(if BITS & 2 != 0 { QUAD } else { 0 });
    let mut result = [f._mm512_setzero_si512(); 4];
    if BITS & 4 != 0 {
        let two: [__m512i; 2] = cast(nibbles.as_chunks::<{ 2 * QUAD }>().0[0]);
        let low = f._mm512_set1_epi32(0x0f0f_0f0f);
        for (two, result) in two.into_iter().zip(result.as_chunks_mut::<2>().0) {
            *result = [
                f._mm512_and_si512(two, low),
                f._mm512_and_si512(f._mm512_srli_epi32::<4>(two), low),
            ];
        }
    }
    if BITS & 2 != 0 {
        let four = cast(pairs.as_chunks::<QUAD>().0[0]);
        let (shifted, mask) = if BITS & 4 != 0 {
            let shifted = [
                f._mm512_slli_epi32::<4>(four),
                f._mm512_slli_epi32::<2>(four),
                four,
                f._mm512_srli_epi32::<2>(four),
            ];
            (shifted, f._mm512_set1_epi32(0x3030_3030))
        } else {
            let shifted = [
                four,
                f._mm512_srli_epi32::<2>(four),
                f._mm512_srli_epi32::<4>(four),
                f._mm512_srli_epi32::<6>(four),
            ];
            (shifted, f._mm512_set1_epi32(0x0303_0303))
        };
        for (shifted, result) in shifted.into_iter().zip(&mut result) {
            *result = f._mm512_or_si512(*result, f._mm512_and_si512(shifted, mask));
        }
    }
    if BITS & 1 != 0 {
        let masks: [u64; 4] = cast(ones.as_chunks::<{ QUAD / 2 }>().0[0]);
        let one = f._mm512_set1_epi32(0x0101_0101 << (BITS - 1));
        for (mask, result) in masks.into_iter().zip(&mut result) {
            *result = simd.avx512bw._mm512_mask_add_epi8(*result, mask, *result, one);
        }
    }
    result
}
