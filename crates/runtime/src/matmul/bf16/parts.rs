//! Splitting of numbers into parts in BF16.

use super::STEP;

/// Returns the nearest BF16 number, ties to even.
#[inline(always)]
fn nearest(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    if x.is_nan() { 0x7fc0 } else { rounded as u16 }
}

/// Returns a BF16 number in F32.
#[inline(always)]
pub(super) fn float(x: u16) -> f32 {
    f32::from_bits(u32::from(x) << 16)
}

/// Splits each number into `P` parts: the nearest, then the nearest to the remainder, which is exact.
#[inline(always)]
pub(super) fn split<const P: usize>(x: &[f32; STEP]) -> [[u16; STEP]; P] {
    let mut rest = *x;
    let mut parts = [[0; STEP]; P];
    for part in &mut parts {
        for i in 0..STEP {
            part[i] = nearest(rest[i]);
            rest[i] -= float(part[i]);
        }
    }
    parts
}

/// Returns the first numbers of a slice, padded with zeros.
#[inline(always)]
pub(super) fn step<T: Copy + Default, const N: usize>(numbers: &[T]) -> [T; N] {
    match numbers.first_chunk() {
        Some(whole) => *whole,
        None => {
            let mut step = [T::default(); N];
            step[..numbers.len()].copy_from_slice(numbers);
            step
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_the_nearest() {
        for bits in (0..=u32::MAX).step_by(997).chain([0x7fff_ffff, 0xffff_ffff, 0x7f7f_ffff]) {
            let x = f32::from_bits(bits);
            let (found, expected) = (nearest(x), half::bf16::from_f32(x));
            assert!(found == expected.to_bits() || x.is_nan() && float(found).is_nan(), "{bits:x}");
        }
    }

    #[test]
    fn two_parts_keep_17_bits() {
        for bits in (1 << 23..255 << 23).step_by(991) {
            let x = f32::from_bits(bits);
            if !(1e-30..1e38).contains(&x) {
                continue;
            }
            let [first, second] = split::<2>(&[x; STEP]).map(|part| float(part[7]));
            assert!(second.abs() <= x / 256.0, "{x}");
            let off = (f64::from(x) - f64::from(first) - f64::from(second)).abs();
            assert!(off <= f64::from(x) / 131_072.0, "{x}");
        }
        // FP16 numbers, and levels of up to 5 bits times an FP16 number, have at most 16 bits.
        for x in [2047.0, 1365.0 * 31.0] {
            let [first, second] = split::<2>(&[x; STEP]).map(|part| float(part[0]));
            assert_eq!(first + second, x);
        }
    }
}
