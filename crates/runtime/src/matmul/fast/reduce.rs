//! Horizontal sums of vectors, and transposition.

use std::arch::x86_64::{__m128i, __m256, __m256i};

use crate::simd::V3F16c;

/// Returns the sum of each of eight vectors.
#[inline(always)]
pub fn sum_eight(simd: V3F16c, v: &[__m256i; 8]) -> __m256i {
    let add = simd.avx2;
    let pairs = [
        add._mm256_hadd_epi32(v[0], v[1]),
        add._mm256_hadd_epi32(v[2], v[3]),
        add._mm256_hadd_epi32(v[4], v[5]),
        add._mm256_hadd_epi32(v[6], v[7]),
    ];
    let low = add._mm256_hadd_epi32(pairs[0], pairs[1]);
    let high = add._mm256_hadd_epi32(pairs[2], pairs[3]);
    let a = simd.avx2._mm256_permute2x128_si256::<0x20>(low, high);
    let b = simd.avx2._mm256_permute2x128_si256::<0x31>(low, high);
    simd.avx2._mm256_add_epi32(a, b)
}

/// Returns the sum of each of eight half vectors.
#[inline(always)]
pub fn sum_eight_halves(simd: V3F16c, v: &[__m128i; 8]) -> __m256i {
    let two = |i: usize| simd.avx._mm256_set_m128i(v[4 + i], v[i]);
    let low = simd.avx2._mm256_hadd_epi32(two(0), two(1));
    let high = simd.avx2._mm256_hadd_epi32(two(2), two(3));
    simd.avx2._mm256_hadd_epi32(low, high)
}

/// Returns the sums of the halves of four vectors: of the first halves, then of the second ones.
#[inline(always)]
pub fn sum_halves(simd: V3F16c, v: &[__m256i; 4]) -> __m256i {
    let low = simd.avx2._mm256_hadd_epi32(v[0], v[1]);
    let high = simd.avx2._mm256_hadd_epi32(v[2], v[3]);
    simd.avx2._mm256_hadd_epi32(low, high)
}

/// Returns the transpose.
#[inline(always)]
pub fn transpose(simd: V3F16c, rows: [__m256; 8]) -> [__m256; 8] {
    let avx = simd.avx;
    let mut pairs = rows;
    for i in 0..4 {
        pairs[2 * i] = avx._mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = avx._mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    let mut fours = pairs;
    for i in 0..2 {
        for half in 0..2 {
            let (a, b) = (pairs[4 * i + half], pairs[4 * i + 2 + half]);
            fours[4 * i + 2 * half] = avx._mm256_shuffle_ps::<0b01_00_01_00>(a, b);
            fours[4 * i + 2 * half + 1] = avx._mm256_shuffle_ps::<0b11_10_11_10>(a, b);
        }
    }
    let mut columns = fours;
    for i in 0..4 {
        columns[i] = avx._mm256_permute2f128_ps::<0x20>(fours[i], fours[4 + i]);
        columns[4 + i] = avx._mm256_permute2f128_ps::<0x31>(fours[i], fours[4 + i]);
    }
    columns
}
