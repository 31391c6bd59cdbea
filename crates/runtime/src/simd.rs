//! AVX2 with F16C, which converts FP16.
#![allow(unsafe_code)]

use std::arch::x86_64::{__m128i, __m256, _mm256_cvtph_ps};
use std::ops::Deref;

use pulp::x86::V3;
use pulp::{NullaryFnOnce, WithSimd};

pulp::simd_type!({
    /// Features of [`V3`], and F16C.
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
    }
});

/// Proof that the processor has AVX2 and F16C: x86-64 since 2013.
#[derive(Clone, Copy)]
pub(crate) struct V3F16c {
    v3: V3,
    features: Features,
}

impl V3F16c {
    /// Queries the processor.
    pub fn try_new() -> Option<Self> {
        Some(Self { v3: V3::try_new()?, features: Features::try_new()? })
    }

    /// Calls a function compiled for these instructions, with everything that is inlined into it.
    #[inline(always)]
    pub fn vectorize<F: NullaryFnOnce>(self, work: F) -> F::Output {
        self.features.vectorize(work)
    }

    /// Calls a function that is generic over vectors.
    #[inline(always)]
    pub fn dispatch<F: WithSimd>(self, work: F) -> F::Output {
        self.vectorize(With { simd: self.v3, work })
    }

    /// Converts eight FP16 numbers to FP32.
    #[inline(always)]
    pub fn floats(self, halves: __m128i) -> __m256 {
        // SAFETY: `features` exists only where the processor has F16C.
        unsafe { _mm256_cvtph_ps(halves) }
    }
}

impl Deref for V3F16c {
    type Target = V3;

    #[inline(always)]
    fn deref(&self) -> &V3 {
        &self.v3
    }
}

struct With<F> {
    simd: V3,
    work: F,
}

impl<F: WithSimd> NullaryFnOnce for With<F> {
    type Output = F::Output;

    #[inline(always)]
    fn call(self) -> F::Output {
        self.work.with_simd::<V3>(self.simd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fp16_conversion_is_exact() {
        let Some(simd) = V3F16c::try_new() else { return };
        let all: Vec<u16> = (0..=u16::MAX).collect();
        for bits in all.as_chunks::<8>().0 {
            let found: [f32; 8] = pulp::cast(simd.floats(pulp::cast(*bits)));
            for (found, bits) in found.iter().zip(bits) {
                let expected = half::f16::from_bits(*bits).to_f32();
                assert!(*found == expected || found.is_nan() && expected.is_nan(), "{bits:x}");
            }
        }
    }
}
