//! Scales of eight blocks.

use std::arch::x86_64::{__m128i, __m256};

use gguf_quant::integers::{Block, IntegerBlock};
use pulp::cast;

use crate::simd::V3F16c;

/// Returns `d` and `dmin` of eight blocks that have them in FP16 from byte `at` on, converted together.
#[inline(always)]
pub fn scales_of<F: IntegerBlock>(simd: V3F16c, blocks: &[F::Block; 8], at: usize) -> [__m256; 2] {
    // 16 bytes of each block that contain the FP16 numbers.
    let start = at.min(F::BYTES - 16);
    let word = (at - start) / 2;
    let words = blocks.each_ref().map(
        #[inline(always)]
        |block| -> __m128i {
            let bytes = block.bytes()[start..].first_chunk::<16>();
            cast(*bytes.expect("blocks are longer"))
        },
    );
    let zero = simd.sse2._mm_setzero_si128();
    let (mut two, mut four) = ([zero; 4], [zero; 2]);
    for (i, two) in two.iter_mut().enumerate() {
        *two = match word / 4 {
            0 => simd.sse2._mm_unpacklo_epi16(words[2 * i], words[2 * i + 1]),
            _ => simd.sse2._mm_unpackhi_epi16(words[2 * i], words[2 * i + 1]),
        };
    }
    for (i, four) in four.iter_mut().enumerate() {
        *four = match word / 2 % 2 {
            0 => simd.sse2._mm_unpacklo_epi32(two[2 * i], two[2 * i + 1]),
            _ => simd.sse2._mm_unpackhi_epi32(two[2 * i], two[2 * i + 1]),
        };
    }
    let even = simd.sse2._mm_unpacklo_epi64(four[0], four[1]);
    let odd = simd.sse2._mm_unpackhi_epi64(four[0], four[1]);
    if !F::MINIMUMS {
        return [
            simd.floats(if word.is_multiple_of(2) { even } else { odd }),
            simd.avx._mm256_setzero_ps(),
        ];
    }
    let signs = simd.sse2._mm_set1_epi16(if F::NEGATED_MIN { i16::MIN } else { 0 });
    [simd.floats(even), simd.floats(simd.sse2._mm_xor_si128(odd, signs))]
}
