//! Products by the instructions of AVX2, in pairs of 16-bit integers.

use std::arch::x86_64::__m256i;

use pulp::cast;
use pulp::x86::V3;

use super::{BATCH, Columns, Kernel, STRIP, Unit};

/// Two tokens of each column.
pub(crate) type Pairs = [[i16; 2]; STRIP];

impl Unit for Pairs {
    const TOKENS: usize = 2;

    fn set(&mut self, token: usize, column: usize, value: i8) {
        self[column][token] = value.into();
    }
}

/// Number of columns of the left operand whose sums fit into registers.
const IN_REGISTERS: usize = 4;

impl Kernel<Pairs> for V3 {
    #[inline(always)]
    fn add_products(
        &self,
        (a, left): (&[Pairs], &Columns),
        part: usize,
        (b, right): (&[Pairs], &Columns),
        sums: &mut [[f32; STRIP]; BATCH],
    ) {
        let scales: [_; 2] = cast(right.scales);
        for first in (0..BATCH).step_by(IN_REGISTERS) {
            let zero: __m256i = cast(self.splat_i32x8(0));
            let mut registers = [[zero; 2]; IN_REGISTERS];
            for (a, b) in a.iter().zip(b) {
                let [low, high]: [__m256i; 2] = cast(*b);
                let a = &a[part * BATCH + first..][..IN_REGISTERS];
                for ([sum_low, sum_high], a) in registers.iter_mut().zip(a) {
                    let a = cast(self.splat_i32x8(cast(*a)));
                    let add = |sum: &mut __m256i, b| {
                        let products = self.avx2._mm256_madd_epi16(b, a);
                        *sum = self.avx2._mm256_add_epi32(*sum, products);
                    };
                    add(sum_low, low);
                    add(sum_high, high);
                }
            }
            for (i, registers) in registers.into_iter().enumerate() {
                let own = self.splat_f32x8(left.scales[part * BATCH + first + i]);
                let sums = &mut sums[first + i];
                let [low, high]: [_; 2] = cast(*sums);
                let add = |register, scale, sum| {
                    let products = self.convert_i32x8_to_f32x8(cast(register));
                    self.mul_add_f32x8(self.mul_f32x8(own, scale), products, sum)
                };
                let [first, second] = registers;
                *sums = cast([add(first, scales[0], low), add(second, scales[1], high)]);
            }
        }
    }
}
