//! Repacked rows with some tokens.

use std::arch::x86_64::{__m512, __m512i};

use pulp::{NullaryFnOnce, cast};

use super::super::ROWS;
use super::super::interleaved::{SomeRows, TOGETHER, interleaved_rows};
use super::super::packed::QUAD;
use super::super::quantized::Quantized;
use super::super::tile::DEPTH;
use super::groups::Sums;
use crate::avx512::V4Vnni;
use crate::repack::{PackedFormat, Piece};

/// Prefetch distance in bytes.
const AHEAD: usize = 12288;

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
            let part =
                Part { bytes: piece, simd, format, x, table, column: p * DEPTH, columns, first };
            let piece = format.piece(columns, piece);
            if format.len == 256 {
                part.large::<BITS, TABLE, UNITS, T>(&piece, &mut sums);
            } else {
                part.small::<BITS, TABLE, T>(&piece, &mut sums);
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
struct Part<'r> {
    simd: V4Vnni,
    format: &'r PackedFormat,
    x: &'r Quantized,
    table: __m512i,
    /// First column.
    column: usize,
    columns: usize,
    /// Bytes of the piece.
    bytes: &'r [u8],
    /// First token.
    first: usize,
}

impl Part<'_> {
    /// Adds the products of a block of 256.
    #[inline(always)]
    fn large<const BITS: usize, const TABLE: bool, const UNITS: usize, const T: usize>(
        &self,
        piece: &Piece<'_>,
        out: &mut [__m512; T],
    ) {
        let Self { simd, format, .. } = *self;
        let f = simd.avx512f;
        let x: SomeRows<'_, T> = self.x.some_rows(self.first, self.column, DEPTH);
        // With known lengths the compiler omits bounds checks.
        let levels = &x.levels[..DEPTH / 16];
        let sums = &x.sums.as_chunks::<2>().0.as_chunks::<T>().0[..8 / UNITS];
        let mut level_sums = [f._mm512_setzero_si512(); T];
        let mut scale_sums = [f._mm512_setzero_si512(); T];
        let planes = Planes::<BITS>::of(piece, DEPTH / 16);
        let pair_sums = &piece.scales.as_chunks::<32>().0[..8 / UNITS];
        for pair in 0..8 / UNITS {
            let scales = simd.avx512bw._mm512_cvtepi8_epi16(cast(pair_sums[pair]));
            let of_group = [
                f._mm512_srai_epi32::<16>(f._mm512_slli_epi32::<16>(scales)),
                f._mm512_srai_epi32::<16>(scales),
            ];
            for (g, scales) in of_group.into_iter().enumerate() {
                let result = self.group::<BITS, TABLE, UNITS, T>(&planes, 2 * pair + g, levels);
                for t in 0..T {
                    let scaled = f._mm512_mullo_epi32(result[t], scales);
                    level_sums[t] = f._mm512_add_epi32(level_sums[t], scaled);
                }
            }
            if format.zero != 0 {
                for t in 0..T {
                    let sums = f._mm512_set1_epi32(cast(sums[pair][t]));
                    scale_sums[t] = simd.add_pairs(scale_sums[t], scales, sums);
                }
            }
        }
        let mut minimum_sums = [f._mm512_setzero_si512(); T];
        for (minimums, sums) in piece.minimums.as_chunks::<32>().0.iter().zip(sums) {
            let minimums = simd.avx512bw._mm512_cvtepu8_epi16(cast(*minimums));
            for t in 0..T {
                let sums = f._mm512_set1_epi32(cast(sums[t]));
                minimum_sums[t] = simd.add_pairs(minimum_sums[t], minimums, sums);
            }
        }
        if format.zero != 0 {
            let zero = f._mm512_set1_epi32(i32::from(format.zero));
            for t in 0..T {
                let less = f._mm512_mullo_epi32(scale_sums[t], zero);
                level_sums[t] = f._mm512_sub_epi32(level_sums[t], less);
            }
        }
        self.add::<T>(piece, 0, level_sums, minimum_sums, &x.scales[0], out);
    }

    /// Adds the products of blocks of 32.
    #[inline(always)]
    fn small<const BITS: usize, const TABLE: bool, const T: usize>(
        &self,
        piece: &Piece<'_>,
        out: &mut [__m512; T],
    ) {
        let Self { simd, format, columns, .. } = *self;
        let f = simd.avx512f;
        let x: SomeRows<'_, T> = self.x.some_rows(self.first, self.column, columns);
        let levels = &x.levels[..columns / 16];
        let planes = Planes::<BITS>::of(piece, columns / 16);
        let blocks = x.sums.as_chunks::<T>().0.iter().zip(x.scales);
        for (block, (sums, x_d)) in blocks.enumerate() {
            let mut level_sums = self.group::<BITS, TABLE, 2, T>(&planes, block, levels);
            let mut minimum_sums = [f._mm512_setzero_si512(); T];
            for t in 0..T {
                let sum = i32::from(sums[t]);
                minimum_sums[t] = f._mm512_set1_epi32(sum);
                let less = f._mm512_set1_epi32(sum * i32::from(format.zero));
                level_sums[t] = f._mm512_sub_epi32(level_sums[t], less);
            }
            self.add::<T>(piece, block, level_sums, minimum_sums, x_d, out);
        }
    }

    /// Prefetches a later piece into the second-level cache, a part of it with each group.
    #[inline(always)]
    fn prefetch<const BITS: usize, const UNITS: usize>(&self, group: usize) {
        let share = UNITS * BITS * QUAD / 2 + 48;
        let lines = self.bytes.as_ptr().cast::<i8>().wrapping_add(AHEAD + group * share);
        for line in (0..share).step_by(64) {
            let line = lines.wrapping_add(line);
            self.simd.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line);
        }
    }

    /// Returns the products of a group.
    #[inline(always)]
    fn group<const BITS: usize, const TABLE: bool, const UNITS: usize, const T: usize>(
        &self,
        planes: &Planes<'_, BITS>,
        group: usize,
        x: &[[[i8; 16]; T]],
    ) -> Sums<T> {
        let simd = self.simd;
        let mut sums = [simd.avx512f._mm512_setzero_si512(); T];
        self.prefetch::<BITS, UNITS>(group);
        for unit in UNITS * group..UNITS * (group + 1) {
            let mut weights = planes.unit(simd, unit);
            if TABLE {
                weights = weights.map(
                    #[inline(always)]
                    |weights| simd.avx512bw._mm512_shuffle_epi8(self.table, weights),
                );
            }
            let x = &x[unit];
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
        piece: &Piece<'_>,
        block: usize,
        level_sums: Sums<T>,
        minimum_sums: Sums<T>,
        x_d: &[f32; T],
        out: &mut [__m512; T],
    ) {
        let Self { simd, format, .. } = *self;
        let f = simd.avx512f;
        let d = self.scales(piece.d, block);
        let mut dmin = f._mm512_setzero_ps();
        if format.minimums {
            dmin = self.scales(piece.dmin, block);
        }
        for t in 0..T {
            let x_d = f._mm512_set1_ps(x_d[t]);
            let mut part =
                f._mm512_mul_ps(f._mm512_mul_ps(d, x_d), f._mm512_cvtepi32_ps(level_sums[t]));
            if format.minimums {
                let dmin = f._mm512_mul_ps(dmin, x_d);
                let less = f._mm512_mul_ps(dmin, f._mm512_cvtepi32_ps(minimum_sums[t]));
                part = f._mm512_sub_ps(part, less);
            }
            out[t] = f._mm512_add_ps(out[t], part);
        }
    }

    /// Returns the scales of a block of all rows.
    #[inline(always)]
    fn scales(&self, scales: &[u8], block: usize) -> __m512 {
        if self.format.halves {
            let halves = scales.as_chunks::<{ 2 * ROWS }>().0[block];
            self.simd.avx512f._mm512_cvtph_ps(cast(halves))
        } else {
            cast(scales.as_chunks::<{ 4 * ROWS }>().0[block])
        }
    }
}

/// Levels of a piece by 16 columns. Missing planes are empty.
struct Planes<'p, const BITS: usize> {
    bytes: &'p [[u8; 4 * QUAD]],
    nibbles: &'p [[u8; 2 * QUAD]],
    pairs: &'p [[u8; QUAD]],
    ones: &'p [[u8; QUAD / 2]],
}

impl<'p, const BITS: usize> Planes<'p, BITS> {
    #[inline(always)]
    fn of(piece: &Piece<'p>, units: usize) -> Self {
        let [bytes, nibbles, pairs, ones] = piece.planes;
        // With known lengths the compiler omits bounds checks.
        let of = |bits: usize| if BITS & bits != 0 { units } else { 0 };
        Self {
            bytes: &bytes.as_chunks().0[..of(8)],
            nibbles: &nibbles.as_chunks().0[..of(4)],
            pairs: &pairs.as_chunks().0[..of(2)],
            ones: &ones.as_chunks().0[..of(1)],
        }
    }

    /// Returns the levels of 16 columns, or their indices.
    #[inline(always)]
    fn unit(&self, simd: V4Vnni, unit: usize) -> [__m512i; 4] {
        let f = simd.avx512f;
        if BITS == 8 {
            return cast(self.bytes[unit]);
        }
        let mut result = [f._mm512_setzero_si512(); 4];
        if BITS & 4 != 0 {
            let two: [__m512i; 2] = cast(self.nibbles[unit]);
            let low = f._mm512_set1_epi32(0x0f0f_0f0f);
            for (two, result) in two.into_iter().zip(result.as_chunks_mut::<2>().0) {
                *result = [
                    f._mm512_and_si512(two, low),
                    f._mm512_and_si512(f._mm512_srli_epi32::<4>(two), low),
                ];
            }
        }
        if BITS & 2 != 0 {
            let four = cast(self.pairs[unit]);
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
            let masks: [u64; 4] = cast(self.ones[unit]);
            let one = f._mm512_set1_epi32(0x0101_0101 << (BITS - 1));
            for (mask, result) in masks.into_iter().zip(&mut result) {
                *result = simd.avx512bw._mm512_mask_add_epi8(*result, mask, *result, one);
            }
        }
        result
    }
}
