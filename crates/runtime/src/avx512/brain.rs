//! AVX-512 with products of pairs of BF16.
#![allow(unsafe_code)]

use std::arch::x86_64::{__m512, __m512bh, __m512i, _mm512_dpbf16_ps};
use std::mem::transmute;

pulp::simd_type!({
    /// Proof that this processor has AVX-512 with BF16: Intel's for servers since 2023, AMD's since 2022.
    pub(crate) struct V4Brain {
        sse: f!("sse"),
        avx512f: f!("avx512f"),
        avx512bw: f!("avx512bw"),
        avx512bf16: f!("avx512bf16"),
    }
});

impl V4Brain {
    /// Brings what stands at an address into the second-level cache, if anything is there.
    #[inline(always)]
    pub fn prefetch(self, at: *const u8) {
        self.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(at.cast());
    }

    /// Adds to each of 16 sums two products of BF16, first that of the upper halves.
    #[inline(always)]
    pub fn add_pairs(self, sums: __m512, a: __m512i, b: __m512i) -> __m512 {
        // SAFETY: a `V4Brain` is only made where the processor has these instructions. Numbers in BF16 are
        // any 16 bits, so vectors of them may be made of any vectors.
        unsafe {
            let [a, b] = [a, b].map(|pairs| transmute::<__m512i, __m512bh>(pairs));
            _mm512_dpbf16_ps(sums, a, b)
        }
    }
}
