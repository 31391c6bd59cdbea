//! Sums of products for rows: 64 weights at a time.

use std::arch::x86_64::{__m256i, __m512i};

use gguf_quant::integers::{Integers, Unpacked};
use pulp::cast;
use pulp::x86::V4;

use super::super::avx2::rows::{Dots, Of};
use super::super::rounded::Pairs;
use crate::avx512::V4Products;
use crate::simd::V3Halves;

impl Dots for V4Products {
    type Lookup = V4;
    type Places = [__m512i; 4];
    type Parts = __m512i;

    #[inline(always)]
    fn simd(self) -> V3Halves {
        self.halves()
    }

    #[inline(always)]
    fn lookup(self) -> V4 {
        *self
    }

    #[inline(always)]
    fn zero(self) -> __m512i {
        self.avx512f._mm512_setzero_si512()
    }

    #[inline(always)]
    fn places<F: Integers>(self) -> Self::Places {
        let [a, b, c, d] = match (F::GROUP, F::PAIRED) {
            (32, true) => const { places(32, true) },
            (32, false) => const { places(32, false) },
            _ => const { places(16, false) },
        };
        [cast(a), cast(b), cast(c), cast(d)]
    }

    #[inline(always)]
    fn scaled<F: Integers, const T: usize>(
        self,
        places: Self::Places,
        weights: &Unpacked,
        x: [Of<'_>; T],
    ) -> [__m512i; T] {
        let scales = self.avx512f._mm512_castsi256_si512(cast(weights.scales));
        let mut sums = [self.zero(); T];
        for (n, levels) in weights.levels.as_chunks::<64>().0.iter().enumerate() {
            let levels: __m512i = cast(*levels);
            let scales = self.avx512bw._mm512_permutexvar_epi16(places[n], scales);
            // One factor must be without a sign.
            let magnitudes = self.avx512bw._mm512_abs_epi8(levels);
            let negative = self.avx512bw._mm512_movepi8_mask(levels);
            for t in 0..T {
                let x: __m512i = cast(x[t].levels.as_chunks::<64>().0[n]);
                let products = if F::TOP.is_some() {
                    self.avx512bw._mm512_maddubs_epi16(levels, x)
                } else {
                    let x = self.avx512bw._mm512_mask_sub_epi8(x, negative, self.zero(), x);
                    self.avx512bw._mm512_maddubs_epi16(magnitudes, x)
                };
                sums[t] = self.add_pairs(sums[t], products, scales);
            }
        }
        sums
    }

    #[inline(always)]
    fn quarters<F: Integers>(self, weights: &[[u8; 32]; 2], x: &Pairs, p: usize) -> __m256i {
        let mut sums = self.avx._mm256_setzero_si256();
        for (weights, x) in weights.iter().zip(&x.levels.as_chunks::<32>().0[2 * p..]) {
            let (weights, x): (__m256i, __m256i) = (cast(*weights), cast(*x));
            sums = if F::TOP.is_some() {
                self.add_bytes_to_eight(sums, weights, x)
            } else {
                let magnitudes = self.avx2._mm256_abs_epi8(weights);
                let x = self.avx2._mm256_sign_epi8(x, weights);
                self.add_bytes_to_eight(sums, magnitudes, x)
            };
        }
        sums
    }

    #[inline(always)]
    fn less(self, sum: __m512i, other: __m256i) -> __m512i {
        self.avx512f._mm512_sub_epi32(sum, self.avx512f._mm512_zextsi256_si512(other))
    }

    #[inline(always)]
    fn sum_eight(self, sums: &[__m512i; 8]) -> __m256i {
        let [a, b, c, d, e, f, g, h] = *sums;
        let (low, high) = (four(self, [a, b, c, d]), four(self, [e, f, g, h]));
        let f = self.avx512f;
        let halves = f._mm512_add_epi32(
            f._mm512_shuffle_i32x4::<0b01_00_01_00>(low, high),
            f._mm512_shuffle_i32x4::<0b11_10_11_10>(low, high),
        );
        let whole = f._mm512_add_epi32(
            f._mm512_shuffle_i32x4::<0b10_00_10_00>(halves, halves),
            f._mm512_shuffle_i32x4::<0b11_01_11_01>(halves, halves),
        );
        f._mm512_castsi512_si256(whole)
    }
}

/// Four sums, of which each quarter of a vector has a quarter.
#[inline(always)]
fn four(simd: V4Products, sums: [__m512i; 4]) -> __m512i {
    let [a, b, c, d] = sums;
    let (low, high) = (two(simd, a, b), two(simd, c, d));
    let f = simd.avx512f;
    f._mm512_add_epi32(f._mm512_unpacklo_epi64(low, high), f._mm512_unpackhi_epi64(low, high))
}

/// Two sums, of which each quarter of a vector has a quarter, in two parts.
#[inline(always)]
fn two(simd: V4Products, a: __m512i, b: __m512i) -> __m512i {
    let f = simd.avx512f;
    f._mm512_add_epi32(f._mm512_unpacklo_epi32(a, b), f._mm512_unpackhi_epi32(a, b))
}

/// Which scale is that of each pair of weights, 64 at a time.
const fn places(group: usize, paired: bool) -> [[u16; 32]; 4] {
    let mut places = [[0; 32]; 4];
    let mut i = 0;
    while i < 128 {
        let scale = if paired { i / 32 + 4 * (i / 8 % 2) } else { 2 * i / group };
        places[i / 32][i % 32] = scale as u16;
        i += 1;
    }
    places
}
