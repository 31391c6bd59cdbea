//! AVX-512 with BF16 dot products.
#![allow(unsafe_code)]

use std::arch::x86_64::{__m512, __m512bh, __m512i, _mm512_dpbf16_ps};
use std::mem::transmute;

use pulp::cast;

pulp::simd_type!({
    /// Proof that the processor has AVX-512 with BF16: Intel server processors since 2023, AMD since 2022.
    pub(crate) struct V4Bf16 {
        sse: f!("sse"),
        avx512f: f!("avx512f"),
        avx512bw: f!("avx512bw"),
        // Without it the compiler uses only half of the registers for sums that end as short vectors.
        avx512vl: f!("avx512vl"),
        avx512bf16: f!("avx512bf16"),
    }
});

impl V4Bf16 {
    /// Prefetches an address into the second-level cache.
    #[inline(always)]
    pub fn prefetch(self, at: *const u8) {
        self.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(at.cast());
    }

    /// Adds two BF16 products to each of 16 sums, first that of the upper halves.
    #[inline(always)]
    pub fn add_pairs(self, sums: __m512, a: __m512i, b: __m512i) -> __m512 {
        // SAFETY: a `V4Bf16` exists only where the processor has these instructions. Any 16 bits are a BF16
        // number, so any vector may be reinterpreted.
        unsafe {
            let [a, b] = [a, b].map(|pairs| transmute::<__m512i, __m512bh>(pairs));
            _mm512_dpbf16_ps(sums, a, b)
        }
    }
    /// Returns the sums of four vectors. The upper half of each is added to the lower one until one number is
    /// left.
    #[inline(always)]
    pub fn totals(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        let f = self.avx512f;
        // Combines halves of two vectors, then quarters of four.
        let lower = f._mm512_shuffle_f32x4::<0b01_00_01_00>(a, b);
        let ab = f._mm512_add_ps(lower, f._mm512_shuffle_f32x4::<0b11_10_11_10>(a, b));
        let lower = f._mm512_shuffle_f32x4::<0b01_00_01_00>(c, d);
        let cd = f._mm512_add_ps(lower, f._mm512_shuffle_f32x4::<0b11_10_11_10>(c, d));
        let lower = f._mm512_shuffle_f32x4::<0b10_00_10_00>(ab, cd);
        let fours = f._mm512_add_ps(lower, f._mm512_shuffle_f32x4::<0b11_01_11_01>(ab, cd));
        let twos = f._mm512_add_ps(fours, f._mm512_permute_ps::<0b01_00_11_10>(fours));
        let ones = f._mm512_add_ps(twos, f._mm512_permute_ps::<0b10_11_00_01>(twos));
        let [[a, ..], [b, ..], [c, ..], [d, ..]]: [[f32; 4]; 4] = cast(ones);
        [a, b, c, d]
    }
}
