//! One number per row in a vector of 64 bytes, for repacked rows.
#![expect(clippy::needless_range_loop, reason = "tokens count through several arrays")]

use std::arch::x86_64::{__m512, __m512i, _MM_HINT_T1};

use pulp::{NullaryFnOnce, cast};

use super::super::ROWS;
use super::super::packed::{QUAD, unit_bytes};
use super::super::strips::{Lanes, Levels};
use crate::avx512::V4Vnni;
use crate::repack::PackedFormat;

impl Lanes for V4Vnni {
    type Integers = __m512i;
    type Floats = __m512;
    type Pairs = __m512i;
    type Scales = __m512i;
    type Table = __m512i;

    const AHEAD: usize = 12288;
    const BOUNDED: bool = false;

    #[inline(always)]
    fn subtracts_zero<L: Levels>() -> bool {
        false
    }

    #[inline(always)]
    fn vectorize<W: NullaryFnOnce>(self, work: W) -> W::Output {
        V4Vnni::vectorize(self, work)
    }

    // With fewer products per byte, hardware prefetching of older processors reaches the speed of plain reading, and
    // prefetching far ahead costs a tenth of it.
    #[inline(always)]
    fn prefetch_from(self) -> usize {
        if self.reads_far_ahead() { 1 } else { 4 }
    }

    #[inline(always)]
    fn prefetch(self, line: *const u8) {
        self.sse._mm_prefetch::<_MM_HINT_T1>(line.cast());
    }

    #[inline(always)]
    fn table<L: Levels>(self, format: &PackedFormat) -> __m512i {
        self.avx512f._mm512_broadcast_i32x4(cast(format.table))
    }

    #[inline(always)]
    fn integers(self, number: i32) -> __m512i {
        self.avx512f._mm512_set1_epi32(number)
    }

    #[inline(always)]
    fn floats(self, number: f32) -> __m512 {
        self.avx512f._mm512_set1_ps(number)
    }

    #[inline(always)]
    fn read_fp16(self, halves: &[[u8; 2]; ROWS]) -> __m512 {
        self.avx512f._mm512_cvtph_ps(cast(*halves))
    }

    #[inline(always)]
    fn read_bf16(self, halves: &[[u8; 2]; ROWS]) -> __m512 {
        let f = self.avx512f;
        cast(f._mm512_slli_epi32::<16>(f._mm512_cvtepu16_epi32(cast(*halves))))
    }

    #[inline(always)]
    fn read_fp32(self, floats: &[[u8; 4]; ROWS]) -> __m512 {
        cast(*floats)
    }

    #[inline(always)]
    fn to_floats(self, integers: __m512i) -> __m512 {
        self.avx512f._mm512_cvtepi32_ps(integers)
    }

    #[inline(always)]
    fn rows(self, floats: __m512) -> [f32; ROWS] {
        cast(floats)
    }

    #[inline(always)]
    fn signed_pairs(self, pairs: &[[u8; 2]; ROWS]) -> __m512i {
        self.avx512bw._mm512_cvtepi8_epi16(cast(*pairs))
    }

    #[inline(always)]
    fn unsigned_pairs(self, pairs: &[[u8; 2]; ROWS]) -> __m512i {
        self.avx512bw._mm512_cvtepu8_epi16(cast(*pairs))
    }

    #[inline(always)]
    fn scales(self, pairs: __m512i) -> [__m512i; 2] {
        let f = self.avx512f;
        [
            f._mm512_srai_epi32::<16>(f._mm512_slli_epi32::<16>(pairs)),
            f._mm512_srai_epi32::<16>(pairs),
        ]
    }

    #[inline(always)]
    fn add_pairs(self, sums: __m512i, pairs: __m512i, x: [i16; 2]) -> __m512i {
        V4Vnni::add_pairs(self, sums, pairs, self.avx512f._mm512_set1_epi32(cast(x)))
    }

    #[inline(always)]
    fn add_integers(self, a: __m512i, b: __m512i) -> __m512i {
        self.avx512f._mm512_add_epi32(a, b)
    }

    #[inline(always)]
    fn subtract_integers(self, a: __m512i, b: __m512i) -> __m512i {
        self.avx512f._mm512_sub_epi32(a, b)
    }

    #[inline(always)]
    fn multiply_integers(self, a: __m512i, b: __m512i) -> __m512i {
        self.avx512f._mm512_mullo_epi32(a, b)
    }

    #[inline(always)]
    fn add_floats(self, a: __m512, b: __m512) -> __m512 {
        self.avx512f._mm512_add_ps(a, b)
    }

    #[inline(always)]
    fn subtract_floats(self, a: __m512, b: __m512) -> __m512 {
        self.avx512f._mm512_sub_ps(a, b)
    }

    #[inline(always)]
    fn multiply_floats(self, a: __m512, b: __m512) -> __m512 {
        self.avx512f._mm512_mul_ps(a, b)
    }

    #[inline(always)]
    fn group<L: Levels, const UNITS: usize, const T: usize>(
        self,
        table: __m512i,
        units: &[u8],
        x: &[[[i8; 16]; T]],
        scales: Option<__m512i>,
    ) -> [__m512i; T] {
        let f = self.avx512f;
        let mut sums = [f._mm512_setzero_si512(); T];
        for (unit, x) in units.chunks_exact(unit_bytes(L::BITS)).zip(x) {
            let mut weights = levels::<L>(self, unit);
            if L::TABLE {
                weights = weights.map(
                    #[inline(always)]
                    |weights| self.avx512bw._mm512_shuffle_epi8(table, weights),
                );
            }
            for k in 0..4 {
                for t in 0..T {
                    let x: [i32; 4] = cast(x[t]);
                    sums[t] = self.add_bytes(sums[t], weights[k], f._mm512_set1_epi32(x[k]));
                }
            }
        }
        if let Some(scales) = scales {
            for t in 0..T {
                sums[t] = f._mm512_mullo_epi32(sums[t], scales);
            }
        }
        sums
    }
}

/// Returns the levels of 16 columns, or their indices.
#[inline(always)]
fn levels<L: Levels>(simd: V4Vnni, bytes: &[u8]) -> [__m512i; 4] {
    let f = simd.avx512f;
    let bytes = &bytes[..unit_bytes(L::BITS)];
    if L::BITS == 8 {
        return cast(bytes.as_chunks::<{ 4 * QUAD }>().0[0]);
    }
    let (nibbles, bytes) = bytes.split_at(if L::BITS & 4 != 0 { 2 * QUAD } else { 0 });
    let (pairs, ones) = bytes.split_at(if L::BITS & 2 != 0 { QUAD } else { 0 });
    let mut result = [f._mm512_setzero_si512(); 4];
    if L::BITS & 4 != 0 {
        let two: [__m512i; 2] = cast(nibbles.as_chunks::<{ 2 * QUAD }>().0[0]);
        let low = f._mm512_set1_epi32(0x0f0f_0f0f);
        for (two, result) in two.into_iter().zip(result.as_chunks_mut::<2>().0) {
            *result = [
                f._mm512_and_si512(two, low),
                f._mm512_and_si512(f._mm512_srli_epi32::<4>(two), low),
            ];
        }
    }
    if L::BITS & 2 != 0 {
        let four = cast(pairs.as_chunks::<QUAD>().0[0]);
        let (shifted, mask) = if L::BITS & 4 != 0 {
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
    if L::BITS & 1 != 0 {
        let masks: [u64; 4] = cast(ones.as_chunks::<{ QUAD / 2 }>().0[0]);
        let one = f._mm512_set1_epi32(0x0101_0101 << (L::BITS - 1));
        for (mask, result) in masks.into_iter().zip(&mut result) {
            *result = simd.avx512bw._mm512_mask_add_epi8(*result, mask, *result, one);
        }
    }
    result
}
