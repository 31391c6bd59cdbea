//! Dot products of rows, 32 weights at a time.

use std::arch::x86_64::__m256i;

use gguf_quant::integers::{IntegerBlock, UnpackedBlock};
use pulp::cast;

use super::super::quantized::Pairs;
use crate::simd::V3F16c;

/// Activations of a block.
#[derive(Clone, Copy)]
pub(super) struct BlockActivations<'x> {
    /// Levels in the order of the weights.
    pub levels: &'x [i8; 256],
    /// Absolute levels, for formats that are [`IntegerBlock::HAS_PAIRED`].
    pub magnitudes: &'x [u8; 256],
}

/// Returns the shuffle indices of the scales of a format.
#[inline(always)]
pub(super) fn places_of<F: IntegerBlock>() -> &'static [[u8; 32]; 8] {
    // With known constants the compiler would split each shuffle in two.
    std::hint::black_box(match (F::GROUP, F::HAS_PAIRED) {
        (32, true) => const { &places(32, true) },
        (32, false) => const { &places(32, false) },
        _ => const { &places(16, false) },
    })
}

/// Returns the products of a block of 256 with `T` rows of activations, times the scales of their groups.
#[inline(always)]
pub(super) fn scaled<F: IntegerBlock, const T: usize>(
    simd: V3F16c,
    places: &[[u8; 32]; 8],
    weights: &UnpackedBlock,
    x: [BlockActivations<'_>; T],
) -> [__m256i; T] {
    let halves = halves::<F>(simd, &weights.scales);
    let mut sums = [simd.avx._mm256_setzero_si256(); T];
    for t in 0..T {
        let x_blocks = x[t].levels.as_chunks().0.iter().zip(x[t].magnitudes.as_chunks().0);
        let pairs = weights.levels.as_chunks().0.iter().zip(x_blocks);
        for (n, (weights, (x, magnitudes))) in pairs.enumerate() {
            let products = if F::HAS_PAIRED {
                mirrored(simd, weights, x, magnitudes)
            } else {
                multiply::<F>(simd, weights, x)
            };
            let half = if F::GROUP == 32 { 0 } else { n / 4 };
            // The two vectors of a pair have the same scales.
            let place = if F::HAS_PAIRED { n / 2 * 2 } else { n };
            let scales = simd.avx2._mm256_shuffle_epi8(halves[half], cast(places[place]));
            let scaled = simd.avx2._mm256_madd_epi16(products, scales);
            sums[t] = simd.avx2._mm256_add_epi32(sums[t], scaled);
        }
    }
    sums
}

/// Returns the products of pair `p` of eight blocks of 32: each in four parts, in one half of the vector.
#[inline(always)]
pub(super) fn quarters<F: IntegerBlock>(
    simd: V3F16c,
    weights: &[[u8; 32]; 2],
    x: &Pairs,
    p: usize,
) -> __m256i {
    let (levels, magnitudes) = (x.levels.as_chunks().0, x.magnitudes.as_chunks().0);
    let ones = simd.avx._mm256_set1_epi16(1);
    let mut products = [simd.avx._mm256_setzero_si256(); 2];
    for half in 0..2 {
        let (weights, n) = (&weights[half], 2 * p + half);
        products[half] = match F::MAX_LEVEL {
            None if F::MAX_MAGNITUDE < 128 => mirrored(simd, weights, &levels[n], &magnitudes[n]),
            _ => multiply::<F>(simd, weights, &levels[n]),
        };
    }
    let [a, b] = products;
    if F::MAX_LEVEL.is_some_and(|top| top < 64) {
        // Four products fit into 16 bits.
        return simd.avx2._mm256_madd_epi16(simd.avx2._mm256_add_epi16(a, b), ones);
    }
    let (a, b) = (simd.avx2._mm256_madd_epi16(a, ones), simd.avx2._mm256_madd_epi16(b, ones));
    simd.avx2._mm256_add_epi32(a, b)
}

/// Returns the scales of each half of 128 weights in both halves of a vector; all of them in the first one if
/// there are eight.
#[inline(always)]
fn halves<F: IntegerBlock>(simd: V3F16c, scales: &[i16; 16]) -> [__m256i; 2] {
    let scales: __m256i = cast(*scales);
    let low = simd.avx2._mm256_permute2x128_si256::<0x00>(scales, scales);
    if F::GROUP == 32 {
        return [low; 2];
    }
    [low, simd.avx2._mm256_permute2x128_si256::<0x11>(scales, scales)]
}

/// Returns the byte indices of the scales of 32 weights in groups of a length, for sums of two.
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

/// Multiplies weights by activations and adds pairs of products.
#[inline(always)]
fn multiply<F: IntegerBlock>(simd: V3F16c, weights: &[u8; 32], levels: &[i8; 32]) -> __m256i {
    let (weights, levels): (__m256i, __m256i) = (cast(*weights), cast(*levels));
    if F::MAX_LEVEL.is_some() {
        return simd.avx2._mm256_maddubs_epi16(weights, levels);
    }
    // One factor must be unsigned; the magnitude of -128 fits into it.
    let magnitudes = simd.avx2._mm256_abs_epi8(weights);
    simd.avx2._mm256_maddubs_epi16(magnitudes, simd.avx2._mm256_sign_epi8(levels, weights))
}

/// Multiplies weights, none of which is -128, by activations: weights take the signs of the activations.
#[inline(always)]
fn mirrored(simd: V3F16c, weights: &[u8; 32], levels: &[i8; 32], magnitudes: &[u8; 32]) -> __m256i {
    let signed = simd.avx2._mm256_sign_epi8(cast(*weights), cast(*levels));
    simd.avx2._mm256_maddubs_epi16(cast(*magnitudes), signed)
}
