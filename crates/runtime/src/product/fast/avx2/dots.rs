//! Sums of products for rows: 32 weights at a time.

use std::arch::x86_64::__m256i;

use gguf_quant::integers::{Integers, Unpacked};
use pulp::cast;
use pulp::x86::V3;

use super::super::rounded::Pairs;
use super::rows::{Dots, Of};
use super::sums::sum_eight;
use crate::simd::V3Halves;

impl Dots for V3Halves {
    type Lookup = V3;
    type Places = &'static [[u8; 32]; 8];
    type Parts = __m256i;

    #[inline(always)]
    fn simd(self) -> V3Halves {
        self
    }

    #[inline(always)]
    fn lookup(self) -> V3 {
        *self
    }

    #[inline(always)]
    fn zero(self) -> __m256i {
        self.avx._mm256_setzero_si256()
    }

    #[inline(always)]
    fn places<F: Integers>(self) -> Self::Places {
        // A compiler that sees these constants makes two shuffles of each one.
        std::hint::black_box(match (F::GROUP, F::PAIRED) {
            (32, true) => const { &places(32, true) },
            (32, false) => const { &places(32, false) },
            _ => const { &places(16, false) },
        })
    }

    #[inline(always)]
    fn scaled<F: Integers, const T: usize>(
        self,
        places: Self::Places,
        weights: &Unpacked,
        x: [Of<'_>; T],
    ) -> [__m256i; T] {
        let halves = halves::<F>(self, &weights.scales);
        let mut sums = [self.zero(); T];
        for t in 0..T {
            let of_x = x[t].levels.as_chunks().0.iter().zip(x[t].magnitudes.as_chunks().0);
            let pairs = weights.levels.as_chunks().0.iter().zip(of_x);
            for (n, (weights, (x, magnitudes))) in pairs.enumerate() {
                let products = if F::PAIRED {
                    mirrored(self, weights, x, magnitudes)
                } else {
                    multiply::<F>(self, weights, x)
                };
                let half = if F::GROUP == 32 { 0 } else { n / 4 };
                // Two vectors of a pair have the same scales.
                let place = if F::PAIRED { n / 2 * 2 } else { n };
                let scales = self.avx2._mm256_shuffle_epi8(halves[half], cast(places[place]));
                let scaled = self.avx2._mm256_madd_epi16(products, scales);
                sums[t] = self.avx2._mm256_add_epi32(sums[t], scaled);
            }
        }
        sums
    }

    #[inline(always)]
    fn quarters<F: Integers>(self, weights: &[[u8; 32]; 2], x: &Pairs, p: usize) -> __m256i {
        let (levels, magnitudes) = (x.levels.as_chunks().0, x.magnitudes.as_chunks().0);
        let ones = self.avx._mm256_set1_epi16(1);
        let mut products = [self.zero(); 2];
        for half in 0..2 {
            let (weights, n) = (&weights[half], 2 * p + half);
            products[half] = match (F::TOP, F::FULL) {
                (None, false) => mirrored(self, weights, &levels[n], &magnitudes[n]),
                _ => multiply::<F>(self, weights, &levels[n]),
            };
        }
        let [a, b] = products;
        if F::TOP.is_some_and(|top| top < 64) {
            // Four products fit into 16 bits.
            return self.avx2._mm256_madd_epi16(self.avx2._mm256_add_epi16(a, b), ones);
        }
        let (a, b) = (self.avx2._mm256_madd_epi16(a, ones), self.avx2._mm256_madd_epi16(b, ones));
        self.avx2._mm256_add_epi32(a, b)
    }

    #[inline(always)]
    fn less(self, sum: __m256i, other: __m256i) -> __m256i {
        self.avx2._mm256_sub_epi32(sum, other)
    }

    #[inline(always)]
    fn sum_eight(self, sums: &[__m256i; 8]) -> __m256i {
        sum_eight(self, sums)
    }
}

/// Scales, those of each half of 128 weights in both halves of a vector; all of them in the first one
/// if there are eight.
#[inline(always)]
fn halves<F: Integers>(simd: V3Halves, scales: &[i16; 16]) -> [__m256i; 2] {
    let scales: __m256i = cast(*scales);
    let low = simd.avx2._mm256_permute2x128_si256::<0x00>(scales, scales);
    if F::GROUP == 32 {
        return [low; 2];
    }
    [low, simd.avx2._mm256_permute2x128_si256::<0x11>(scales, scales)]
}

/// Which bytes of these are the scales of 32 weights in groups of so many, for sums of two.
const fn places(group: usize, paired: bool) -> [[u8; 32]; 8] {
    let mut places = [[0; 32]; 8];
    let mut i = 0;
    while i < 256 {
        let scale = if paired { i / 64 + 4 * (i / 16 % 2) } else { i / group % 8 };
        places[i / 32][i % 32] = (2 * scale + i % 2) as u8;
        i += 1;
    }
    places
}

/// Weights and activations, two products added at a time.
#[inline(always)]
fn multiply<F: Integers>(simd: V3Halves, weights: &[u8; 32], levels: &[i8; 32]) -> __m256i {
    let (weights, levels): (__m256i, __m256i) = (cast(*weights), cast(*levels));
    if F::TOP.is_some() {
        return simd.avx2._mm256_maddubs_epi16(weights, levels);
    }
    // One factor must be without a sign; -128 has a magnitude then, too.
    let magnitudes = simd.avx2._mm256_abs_epi8(weights);
    simd.avx2._mm256_maddubs_epi16(magnitudes, simd.avx2._mm256_sign_epi8(levels, weights))
}

/// The same where no weight is -128, and the signs of activations can stand with the weights.
#[inline(always)]
fn mirrored(
    simd: V3Halves,
    weights: &[u8; 32],
    levels: &[i8; 32],
    magnitudes: &[u8; 32],
) -> __m256i {
    let signed = simd.avx2._mm256_sign_epi8(cast(*weights), cast(*levels));
    simd.avx2._mm256_maddubs_epi16(cast(*magnitudes), signed)
}
