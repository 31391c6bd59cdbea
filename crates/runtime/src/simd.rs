//! AVX2 with F16C, which decodes halves.
#![allow(unsafe_code)]

use std::arch::x86_64::{__m128i, __m256, _mm256_cvtph_ps};
use std::ops::Deref;

use pulp::x86::V3;
use pulp::{NullaryFnOnce, WithSimd};

pulp::simd_type!({
    /// What [`V3`] has, and F16C.
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

/// Proof that this processor has AVX2 and F16C, as all do since 2013.
#[derive(Clone, Copy)]
pub(crate) struct V3Halves {
    v3: V3,
    features: Features,
}

impl V3Halves {
    /// Asks the processor.
    pub fn try_new() -> Option<Self> {
        Some(Self { v3: V3::try_new()?, features: Features::try_new()? })
    }

    /// Calls what is compiled for these instructions: all that is inlined into it.
    #[inline(always)]
    pub fn vectorize<F: NullaryFnOnce>(self, work: F) -> F::Output {
        self.features.vectorize(work)
    }

    /// The same for what works with any vectors.
    #[inline(always)]
    pub fn dispatch<F: WithSimd>(self, work: F) -> F::Output {
        self.vectorize(With { simd: self.v3, work })
    }

    /// Eight halves as floats, exactly.
    #[inline(always)]
    pub fn floats(self, halves: __m128i) -> __m256 {
        // SAFETY: `features` is only made where the processor has F16C.
        unsafe { _mm256_cvtph_ps(halves) }
    }
}

impl Deref for V3Halves {
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
    fn halves_are_those_of_the_standard() {
        let Some(simd) = V3Halves::try_new() else { return };
        let all: Vec<u16> = (0..=u16::MAX).collect();
        for bits in all.as_chunks::<8>().0 {
            let found: [f32; 8] = pulp::cast(simd.floats(pulp::cast(*bits)));
            for (found, bits) in found.iter().zip(bits) {
                let wanted = half::f16::from_bits(*bits).to_f32();
                assert!(*found == wanted || found.is_nan() && wanted.is_nan(), "{bits:x}");
            }
        }
    }
}
