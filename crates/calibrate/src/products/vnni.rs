//! AVX-512 with VNNI: dot products of INT8.
#![allow(unsafe_code)]

use std::arch::x86_64::{__m512i, _mm512_dpbusd_epi32};

use pulp::x86::V4;
use pulp::{NullaryFnOnce, cast};

use super::{BATCH, Bytes, Columns, Kernel, STRIP, StripProducts};

pulp::simd_type!({
    /// Features of [`V4`], and VNNI.
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
        avx512f: f!("avx512f"),
        avx512bw: f!("avx512bw"),
        avx512cd: f!("avx512cd"),
        avx512dq: f!("avx512dq"),
        avx512vl: f!("avx512vl"),
        avx512vnni: f!("avx512vnni"),
    }
});

/// Proof that the processor has AVX-512 and VNNI.
#[derive(Clone, Copy)]
pub(crate) struct Vnni {
    v4: V4,
    features: Features,
}

impl Vnni {
    /// Queries the processor.
    pub fn try_new() -> Option<Self> {
        Some(Self { v4: V4::try_new()?, features: Features::try_new()? })
    }

    /// Computes the products of a strip.
    pub fn run(self, work: StripProducts<'_, Bytes>) {
        self.features.vectorize(Run(self, work));
    }
}

struct Run<'r>(Vnni, StripProducts<'r, Bytes>);

impl NullaryFnOnce for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.1.run(&self.0);
    }
}

impl Kernel<Bytes> for Vnni {
    #[inline(always)]
    fn add_products(
        &self,
        (a, left): (&[Bytes], &Columns),
        part: usize,
        (b, right): (&[Bytes], &Columns),
        sums: &mut [[f32; STRIP]; BATCH],
    ) {
        let Self { v4, .. } = self;
        // The instruction multiplies unsigned by signed numbers, so `b` is shifted by 128.
        let shift = v4.splat_u8x64(128);
        let mut registers: [__m512i; BATCH] = [cast(v4.splat_i32x16(0)); BATCH];
        for (i, register) in registers.iter_mut().enumerate() {
            *register = cast(v4.splat_i32x16(-128 * left.totals[part * BATCH + i]));
        }
        for (a, b) in a.iter().zip(b) {
            let b = cast(v4.xor_u8x64(cast(*b), shift));
            for (register, a) in registers.iter_mut().zip(&a.as_chunks::<BATCH>().0[part]) {
                let a = cast(v4.splat_i32x16(cast(*a)));
                // SAFETY: `features` exists only where the processor has AVX-512 and VNNI.
                *register = unsafe { _mm512_dpbusd_epi32(*register, b, a) };
            }
        }
        for (i, register) in registers.into_iter().enumerate() {
            let scale =
                v4.mul_f32x16(v4.splat_f32x16(left.scales[part * BATCH + i]), cast(right.scales));
            let products = v4.convert_i32x16_to_f32x16(cast(register));
            sums[i] = cast(v4.mul_add_f32x16(scale, products, cast(sums[i])));
        }
    }
}
