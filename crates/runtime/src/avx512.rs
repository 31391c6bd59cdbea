//! AVX-512 with VNNI: dot products of INT8 and INT16.
#![allow(unsafe_code)]

pub(crate) mod bf16;

use std::arch::x86_64::{__cpuid, __m512i, _mm512_dpbusd_epi32, _mm512_dpwssd_epi32};
use std::ops::Deref;
use std::sync::LazyLock;

use pulp::NullaryFnOnce;
use pulp::x86::V4;

use crate::simd::V3F16c;

pulp::simd_type!({
    /// Features of [`V4`] and [`V3F16c`], and VNNI.
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

/// Proof that the processor has AVX-512 and VNNI: Intel server processors since 2019, AMD since 2022.
#[derive(Clone, Copy)]
pub struct V4Vnni {
    halves: V3F16c,
    v4: V4,
    features: Features,
    reads_far_ahead: bool,
}

impl V4Vnni {
    /// Queries the processor.
    pub fn try_new() -> Option<Self> {
        Some(Self {
            halves: V3F16c::try_new()?,
            v4: V4::try_new()?,
            features: Features::try_new()?,
            reads_far_ahead: *IS_ZEN_5_OR_LATER,
        })
    }

    /// Returns the proof for AVX2.
    #[inline(always)]
    pub(crate) fn halves(self) -> V3F16c {
        self.halves
    }

    /// Whether a core reads a single stream faster if it is prefetched far ahead.
    #[inline(always)]
    pub(crate) fn reads_far_ahead(self) -> bool {
        self.reads_far_ahead
    }

    /// Calls a function compiled for these instructions, with everything that is inlined into it.
    #[inline(always)]
    pub fn vectorize<F: NullaryFnOnce>(self, work: F) -> F::Output {
        self.features.vectorize(work)
    }

    /// Adds four INT8 products to each of 16 sums; the first factors are unsigned.
    #[inline(always)]
    pub fn add_bytes(self, sums: __m512i, unsigned: __m512i, signed: __m512i) -> __m512i {
        // SAFETY: `features` exists only where the processor has AVX-512 and VNNI.
        unsafe { _mm512_dpbusd_epi32(sums, unsigned, signed) }
    }

    /// Adds two INT16 products to each of 16 sums.
    #[inline(always)]
    pub fn add_pairs(self, sums: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `features` exists only where the processor has AVX-512 and VNNI.
        unsafe { _mm512_dpwssd_epi32(sums, a, b) }
    }
}

/// Whether the processor is an AMD of family 1Ah (Zen 5) or later. CPUID leaves a virtual machine, so it is asked once.
static IS_ZEN_5_OR_LATER: LazyLock<bool> = LazyLock::new(|| {
    let (vendor, signature) = (__cpuid(0), __cpuid(1).eax);
    let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    name.as_flattened() == b"AuthenticAMD" && family >= 0x1a
});

impl Deref for V4Vnni {
    type Target = V4;

    #[inline(always)]
    fn deref(&self) -> &V4 {
        &self.v4
    }
}
