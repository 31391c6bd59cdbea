//! Vectorized search for NaN and infinity; nearly all data has neither.

use pulp::{Simd, WithSimd};

use crate::dispatch::InstructionSet;

/// Infinity of F32 and BF16 in the form that [`first`] compares: shifted left to drop the sign.
pub(crate) const INFINITY: u32 = f32::INFINITY.to_bits() << 1;

/// Infinity of F16 in the form that [`first`] compares.
pub(crate) const INFINITY_F16: u32 = 0x7c00 << 17;

/// Returns the index of the first infinity or NaN: a word that is at least `infinity` as an
/// unsigned integer.
#[inline(always)]
pub(crate) fn first(
    instructions: InstructionSet,
    infinity: u32,
    mut words: impl Iterator<Item = u32> + Clone,
) -> Option<usize> {
    match instructions.run(Max(words.clone())) < infinity {
        true => None,
        false => words.position(|word| word >= infinity),
    }
}

/// Returns the index and value of the first float that is infinite or NaN.
pub(crate) fn first_not_finite(instructions: InstructionSet, x: &[f32]) -> Option<(usize, f32)> {
    let position = first(instructions, INFINITY, x.iter().map(|x| x.to_bits() << 1))?;
    Some((position, x[position]))
}

/// Computes the maximum of an iterator.
struct Max<I>(I);

impl<I: Iterator<Item = u32>> WithSimd for Max<I> {
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
    fn finds_the_first_nan_or_infinity() {
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
