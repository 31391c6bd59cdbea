//! Division of many by one.

use pulp::Simd;

use super::Lanes;

/// What others are divided by.
///
/// Processors divide one vector in the time of a dozen multiplications. With the rounded inverse
/// and fused multiplications a quotient can be corrected until it is the rounded one: P. Markstein,
/// Computation of Elementary Functions on the IBM RISC System/6000, 1990, theorem 8.
pub(crate) struct Divisor<S: Simd, const U: usize> {
    by: Lanes<S, U>,
    /// None where there are no fused multiplications, or intermediate results could be too small
    /// or too large for what they are.
    inverse: Option<Lanes<S, U>>,
}

impl<S: Simd, const U: usize> Divisor<S, U> {
    #[inline(always)]
    pub fn new(simd: S, by: f32) -> Self {
        let is_moderate = (1e-18..1e18).contains(&by.abs());
        let inverse = (!S::IS_SCALAR && is_moderate).then(|| Lanes::splat(simd, 1.0 / by));
        Self { by: Lanes::splat(simd, by), inverse }
    }

    /// Quotients as `x / by`, to the bit from 2^-30 on; smaller ones may be off.
    #[inline(always)]
    pub fn divide(&self, x: Lanes<S, U>) -> Lanes<S, U> {
        if let Some(inverse) = self.inverse {
            // The first correction brings the quotient next to the rounded one, as the theorem
            // wants it.
            let quotient = self.corrected(self.corrected(x * inverse, x, inverse), x, inverse);
            if !(!quotient.abs().less(quotient.constant(4_194_304.0))).any() {
                return quotient;
            }
        }
        x / self.by
    }

    #[inline(always)]
    fn corrected(
        &self,
        quotient: Lanes<S, U>,
        x: Lanes<S, U>,
        inverse: Lanes<S, U>,
    ) -> Lanes<S, U> {
        let rest = quotient.negative().fused(self.by, x);
        rest.fused(inverse, quotient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::InstructionSet;

    /// Different quotients, as bits of dividend and divisor.
    struct Differences;

    impl pulp::WithSimd for Differences {
        type Output = Vec<(u32, u32)>;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
            let mut state = 1u64;
            let mut random = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 32) as u32
            };
            let mut different = Vec::new();
            for round in 0..20_000 {
                let mut by = f32::from_bits(random());
                if round % 4 > 0 {
                    by = f32::from_bits(by.to_bits() & 0x807f_ffff | 0x3f80_0000);
                }
                let divisor = Divisor::<S, 1>::new(simd, by);
                let x: Vec<f32> = (0..Lanes::<S, 1>::COUNT)
                    .map(|_| match random() % 4 {
                        // Of any size; near an integer, or a half, times the divisor.
                        0 => f32::from_bits(random()),
                        kind => {
                            let at = (random() % 65 * kind.min(2)) as f32 / 2.0 * by;
                            f32::from_bits(at.to_bits().wrapping_add(random() % 5).wrapping_sub(2))
                        }
                    })
                    .collect();
                let found = divisor.divide(Lanes::from_fn(simd, |i| x[i]));
                for (&x, &found) in x.iter().zip(found.as_slice()) {
                    let expected = x / by;
                    let same = found.to_bits() == expected.to_bits()
                        || found.is_nan() && expected.is_nan()
                        || expected.abs() < 1e-9 && found.abs() < 1e-8;
                    if !same {
                        different.push((x.to_bits(), by.to_bits()));
                    }
                }
            }
            different
        }
    }

    #[test]
    fn quotients_are_those_of_division() {
        for instructions in InstructionSet::available() {
            assert_eq!(instructions.run(Differences), [], "{instructions}");
        }
    }
}
