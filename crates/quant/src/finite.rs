//! The first number that is not finite, looked for by vectors: nearly always there is none.

use pulp::{Simd, WithSimd};

use crate::dispatch::InstructionSet;

/// Infinity as [`first`] takes F32 and BF16: without the sign, from the top of the word.
pub(crate) const INFINITY: u32 = f32::INFINITY.to_bits() << 1;

/// The same of F16.
pub(crate) const INFINITY_F16: u32 = 0x7c00 << 17;

/// The position of the first that is infinite or NaN: as unsigned integers they are not below
/// `infinity`.
#[inline(always)]
pub(crate) fn first(
    instructions: InstructionSet,
    infinity: u32,
    mut words: impl Iterator<Item = u32> + Clone,
) -> Option<usize> {
    match instructions.run(Largest(words.clone())) < infinity {
        true => None,
        false => words.position(|word| word >= infinity),
    }
}

/// The first float that is infinite or NaN.
pub(crate) fn first_not_finite(instructions: InstructionSet, x: &[f32]) -> Option<(usize, f32)> {
    let position = first(instructions, INFINITY, x.iter().map(|x| x.to_bits() << 1))?;
    Some((position, x[position]))
}

/// Their maximum.
struct Largest<I>(I);

impl<I: Iterator<Item = u32>> WithSimd for Largest<I> {
    type Output = u32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> u32 {
        self.0.fold(0, u32::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_of_any_kind() {
        for set in InstructionSet::available() {
            let mut x = [f32::MAX; 100];
            x[50] = f32::MIN;
            assert_eq!(first_not_finite(set, &x), None);
            x[50] = f32::NEG_INFINITY;
            x[70] = f32::NAN;
            assert_eq!(first_not_finite(set, &x), Some((50, f32::NEG_INFINITY)));
            assert_eq!(first_not_finite(set, &x[51..]).map(|found| found.0), Some(19));
        }
    }
}
