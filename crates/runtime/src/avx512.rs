//! AVX-512 with sums of products of small integers (VNNI).
#![allow(unsafe_code)]

pub(crate) mod brain;

use std::arch::x86_64::{__m512, __m512i, _mm512_dpbusd_epi32, _mm512_dpwssd_epi32};
use std::ops::Deref;

use pulp::core_arch::x86::Avx512f;
use pulp::x86::V4;
use pulp::{NullaryFnOnce, WithSimd, cast};

use crate::simd::{V3Halves, With};

pulp::simd_type!({
    /// What [`V4`] and [`V3Halves`] have, and VNNI.
    struct Features {
        sse: f!("sse"),
        sse2: f!("sse2"),
        fxsr: f!("fxsr"),
        sse3: f!("sse3"),
        ssse3: f!("ssse3"),
        sse4_1: f!("sse4.1"),
        sse4_2: f!("sse4.2"),
        popcnt: f!("popcnt"),
        avx: f!("avx"),
        avx2: f!("avx2"),
        bmi1: f!("bmi1"),
        bmi2: f!("bmi2"),
        fma: f!("fma"),
        lzcnt: f!("lzcnt"),
        f16c: f!("f16c"),
        avx512f: f!("avx512f"),
        avx512bw: f!("avx512bw"),
        avx512cd: f!("avx512cd"),
        avx512dq: f!("avx512dq"),
        avx512vl: f!("avx512vl"),
        avx512vnni: f!("avx512vnni"),
    }
});

/// Proof that this processor has AVX-512 and VNNI: Intel's for servers since 2019, AMD's since 2022.
#[derive(Clone, Copy)]
pub(crate) struct V4Products {
    halves: V3Halves,
    v4: V4,
    features: Features,
}

impl V4Products {
    /// Asks the processor.
    pub fn try_new() -> Option<Self> {
        Some(Self {
            halves: V3Halves::try_new()?,
            v4: V4::try_new()?,
            features: Features::try_new()?,
        })
    }

    /// The proof of less.
    #[inline(always)]
    pub fn halves(self) -> V3Halves {
        self.halves
    }

    /// Calls what is compiled for these instructions: all that is inlined into it.
    #[inline(always)]
    pub fn vectorize<F: NullaryFnOnce>(self, work: F) -> F::Output {
        self.features.vectorize(work)
    }

    /// The same for what works with any vectors.
    #[inline(always)]
    pub fn dispatch<F: WithSimd>(self, work: F) -> F::Output {
        self.vectorize(With { simd: self.v4, work })
    }

    /// Adds to each of 16 sums four products of bytes, the first of which have no sign.
    #[inline(always)]
    pub fn add_bytes(self, sums: __m512i, unsigned: __m512i, signed: __m512i) -> __m512i {
        // SAFETY: `features` is only made where the processor has AVX-512 and VNNI.
        unsafe { _mm512_dpbusd_epi32(sums, unsigned, signed) }
    }

    /// Adds to each of 16 sums two products of 16 bits.
    #[inline(always)]
    pub fn add_pairs(self, sums: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `features` is only made where the processor has AVX-512 and VNNI.
        unsafe { _mm512_dpwssd_epi32(sums, a, b) }
    }
}

impl Deref for V4Products {
    type Target = V4;

    #[inline(always)]
    fn deref(&self) -> &V4 {
        &self.v4
    }
}

/// The sums of four vectors: of each the upper half is added to the lower one until one number is left.
#[inline(always)]
pub(crate) fn totals(f: Avx512f, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
    // Halves of two vectors side by side, then quarters of four.
    let lower = f._mm512_shuffle_f32x4::<0b01_00_01_00>(a, b);
    let ab = f._mm512_add_ps(lower, f._mm512_shuffle_f32x4::<0b11_10_11_10>(a, b));
    let lower = f._mm512_shuffle_f32x4::<0b01_00_01_00>(c, d);
    let cd = f._mm512_add_ps(lower, f._mm512_shuffle_f32x4::<0b11_10_11_10>(c, d));
    let lower = f._mm512_shuffle_f32x4::<0b10_00_10_00>(ab, cd);
    let fours = f._mm512_add_ps(lower, f._mm512_shuffle_f32x4::<0b11_01_11_01>(ab, cd));
    let twos = f._mm512_add_ps(fours, f._mm512_permute_ps::<0b01_00_11_10>(fours));
    let ones = f._mm512_add_ps(twos, f._mm512_permute_ps::<0b10_11_00_01>(twos));
    let ones: [[f32; 4]; 4] = cast(ones);
    ones.map(
        #[inline(always)]
        |[one, ..]| one,
    )
}
