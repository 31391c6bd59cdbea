//! AVX-512 with products of pairs of BF16.
#![allow(unsafe_code)]

use std::arch::x86_64::{__m512, __m512bh, __m512i, _mm512_dpbf16_ps};
use std::mem::transmute;

use pulp::cast;

pulp::simd_type!({
    /// Proof that this processor has AVX-512 with BF16: Intel's for servers since 2023, AMD's since 2022.
    pub(crate) struct V4Brain {
        sse: f!("sse"),
        avx512f: f!("avx512f"),
        avx512bw: f!("avx512bw"),
        // Without it no more than half of the registers are used for sums that end as short vectors.
        avx512vl: f!("avx512vl"),
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
    /// The sums of four vectors: of each the upper half is added to the lower one until one number is left.
    #[inline(always)]
    pub fn totals(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        let f = self.avx512f;
        // Halves of two vectors side by side, then quarters of four.
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
