//! Products by the instructions of AVX-512 VNNI.

use std::arch::x86_64::__m512i;

use gguf_runtime::V4Vnni;
use pulp::cast;

use super::{BATCH, Bytes, Columns, Kernel, STRIP};

impl Kernel<Bytes> for V4Vnni {
    #[inline(always)]
    fn add_products(
        &self,
        (a, left): (&[Bytes], &Columns),
        part: usize,
        (b, right): (&[Bytes], &Columns),
        sums: &mut [[f32; STRIP]; BATCH],
    ) {
        // The instruction multiplies unsigned by signed numbers, so `b` is shifted by 128.
        let shift = self.splat_u8x64(128);
        let mut registers: [__m512i; BATCH] = [cast(self.splat_i32x16(0)); BATCH];
        for (i, register) in registers.iter_mut().enumerate() {
            *register = cast(self.splat_i32x16(-128 * left.totals[part * BATCH + i]));
        }
        for (a, b) in a.iter().zip(b) {
            let b = cast(self.xor_u8x64(cast(*b), shift));
            for (register, a) in registers.iter_mut().zip(&a.as_chunks::<BATCH>().0[part]) {
                let a = cast(self.splat_i32x16(cast(*a)));
                *register = self.add_bytes(*register, b, a);
            }
        }
        for (i, register) in registers.into_iter().enumerate() {
            let scale = self
                .mul_f32x16(self.splat_f32x16(left.scales[part * BATCH + i]), cast(right.scales));
            let products = self.convert_i32x16_to_f32x16(cast(register));
            sums[i] = cast(self.mul_add_f32x16(scale, products, cast(sums[i])));
        }
    }
}
