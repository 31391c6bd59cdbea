//! NEON: INT8 products, for which the standard library has no stable functions yet, and conversion of FP16,
//! which the `pulp` crate lacks.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    float32x4_t, int8x16_t, int32x4_t, uint16x4_t, vcvt_f32_f16, vreinterpret_f16_u16,
};
use std::arch::asm;

use pulp::aarch64::Neon;

pulp::simd_type!({
    /// Proof that the processor has INT8 dot products (`dotprod`): all from Armv8.4 on, and most of Armv8.2.
    pub(crate) struct NeonDot {
        pub neon: f!("neon"),
        pub dotprod: f!("dotprod"),
    }

    /// Proof that the processor has INT8 matrix products (`i8mm`) too: all from Armv8.6 on.
    pub(crate) struct NeonMatrix {
        pub neon: f!("neon"),
        pub dotprod: f!("dotprod"),
        pub i8mm: f!("i8mm"),
    }
});

impl NeonDot {
    /// Returns the base instruction set.
    #[inline(always)]
    pub fn base(self) -> Neon {
        Neon { neon: self.neon }
    }

    /// Adds four INT8 products to each of four sums.
    #[inline(always)]
    pub fn dot(self, sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
        // SAFETY: `self` exists only where the processor has this instruction.
        unsafe { sdot(sums, a, b) }
    }

    /// Adds four INT8 products to each of four sums; all use the four bytes of `b` from `4 LANE` on.
    #[inline(always)]
    pub fn dot_lane<const LANE: usize>(
        self,
        sums: int32x4_t,
        a: int8x16_t,
        b: int8x16_t,
    ) -> int32x4_t {
        // SAFETY: `self` exists only where the processor has this instruction.
        unsafe { sdot_lane::<LANE>(sums, a, b) }
    }

    /// Converts four FP16 numbers to FP32.
    #[inline(always)]
    pub fn floats(self, halves: uint16x4_t) -> float32x4_t {
        // SAFETY: `self` exists only where the processor has NEON.
        unsafe { vcvt_f32_f16(vreinterpret_f16_u16(halves)) }
    }
}

impl NeonMatrix {
    /// Returns the proof for dot products.
    #[inline(always)]
    pub fn dots(self) -> NeonDot {
        NeonDot { neon: self.neon, dotprod: self.dotprod }
    }

    /// Adds the INT8 products of two pairs of rows of eight bytes to four sums: first with first, first with
    /// second, second with first, second with second.
    #[inline(always)]
    pub fn matrix(self, sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
        // SAFETY: `self` exists only where the processor has this instruction.
        unsafe { smmla(sums, a, b) }
    }
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes only these registers.
    unsafe {
        asm!(
            "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sums, in(vreg) a, in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot_lane<const LANE: usize>(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes only these registers.
    unsafe {
        asm!(
            "sdot {0:v}.4s, {1:v}.16b, {2:v}.4b[{3}]",
            inout(vreg) sums, in(vreg) a, in(vreg) b, const LANE,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

#[inline]
#[target_feature(enable = "neon,i8mm")]
fn smmla(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes only these registers.
    unsafe {
        asm!(
            "smmla {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sums, in(vreg) a, in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns signed bytes, including the minimum and the maximum.
    fn bytes(factor: i32) -> [i8; 16] {
        std::array::from_fn(|i| match i {
            0 => -128,
            9 => 127,
            _ => (i as i32 * factor) as i8,
        })
    }

    fn product(a: &[i8], b: &[i8]) -> i32 {
        a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
    }

    #[test]
    fn dot_products_are_exact() {
        let Some(simd) = NeonDot::try_new() else { return };
        let (a, b) = (bytes(37), bytes(-91));
        let sums = [1, -2, 1 << 30, 4];
        let (of_a, of_b) = (a.as_chunks::<4>().0, b.as_chunks::<4>().0);
        let found: [i32; 4] = pulp::cast(simd.dot(pulp::cast(sums), pulp::cast(a), pulp::cast(b)));
        for i in 0..4 {
            assert_eq!(found[i], sums[i] + product(&of_a[i], &of_b[i]), "{i}");
        }
        let lane = simd.dot_lane::<2>(pulp::cast(sums), pulp::cast(a), pulp::cast(b));
        let found: [i32; 4] = pulp::cast(lane);
        for i in 0..4 {
            assert_eq!(found[i], sums[i] + product(&of_a[i], &of_b[2]), "{i}");
        }
    }

    #[test]
    fn matrix_products_are_exact() {
        let Some(simd) = NeonMatrix::try_new() else { return };
        let (a, b) = (bytes(37), bytes(-91));
        let sums = [1, -2, 1 << 30, 4];
        let (of_a, of_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
        let found: [i32; 4] =
            pulp::cast(simd.matrix(pulp::cast(sums), pulp::cast(a), pulp::cast(b)));
        for i in 0..4 {
            assert_eq!(found[i], sums[i] + product(&of_a[i / 2], &of_b[i % 2]), "{i}");
        }
    }

    #[test]
    fn fp16_conversion_is_exact() {
        let Some(simd) = NeonDot::try_new() else { return };
        let all: Vec<u16> = (0..=u16::MAX).collect();
        for bits in all.as_chunks::<4>().0 {
            let found: [f32; 4] = pulp::cast(simd.floats(pulp::cast(*bits)));
            for (found, bits) in found.iter().zip(bits) {
                let expected = half::f16::from_bits(*bits).to_f32();
                assert!(*found == expected || found.is_nan() && expected.is_nan(), "{bits:x}");
            }
        }
    }
}
