//! AVX-512 with sums of products of small integers (VNNI).
#![allow(unsafe_code)]

pub(crate) mod brain;

use std::arch::x86_64::{__m512i, _mm512_dpbusd_epi32, _mm512_dpwssd_epi32};
use std::ops::Deref;

use pulp::NullaryFnOnce;
use pulp::x86::V4;

use crate::simd::V3Halves;

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
