//! Branch-free conversion between FP16 and F32, which compilers can vectorize.

/// Difference of the exponent biases, shifted to the exponent field.
const REBIAS: u32 = (127 - 15) << 23;

/// Smallest normal FP16 number and infinity, with the mantissa shifted to its place in F32.
const NORMAL: u32 = 0x0400 << 13;
const INFINITY: u32 = 0x7c00 << 13;

/// Converts FP16 to F32. A NaN becomes quiet, as processor instructions make it.
#[inline(always)]
pub(crate) fn to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7fff) << 13;
    // Adding a leading one and subtracting it again normalizes a subnormal number.
    let one = REBIAS + NORMAL;
    let subnormal = f32::from_bits(magnitude + one) - f32::from_bits(one);
    let normal = magnitude + REBIAS;
    let quiet = if magnitude > INFINITY { 1 << 22 } else { 0 };
    let bits = if magnitude < NORMAL { subnormal.to_bits() } else { normal };
    let bits = if magnitude < INFINITY { bits } else { (normal + REBIAS) | quiet };
    f32::from_bits(sign | bits)
}

/// Rounds a number that is not NaN to the nearest FP16, ties to even; infinity on overflow.
#[inline(always)]
pub(crate) fn from_f32(x: f32) -> u16 {
    let sign = (x.to_bits() >> 16) as u16 & 0x8000;
    let magnitude = x.to_bits() & 0x7fff_ffff;
    // Adding 0.5 rounds the sum to the precision of a subnormal FP16.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0xfff + odd) >> 13;
    let bits = if magnitude < REBIAS + NORMAL { subnormal } else { normal };
    // Smallest F32 that rounds to infinity.
    let bits = if magnitude < 65520f32.to_bits() { bits } else { 0x7c00 };
    sign | bits as u16
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn all_fp16_numbers_and_midpoints() {
        for bits in 0..=u16::MAX {
            let x = f16::from_bits(bits).to_f32();
            let quiet = if x.is_nan() { 1 << 22 } else { 0 };
            assert_eq!(to_f32(bits).to_bits(), x.to_bits() | quiet);
            if x.is_nan() {
                continue;
            }
            let middle = (x + f16::from_bits(bits.wrapping_add(1)).to_f32()) / 2.0;
            for x in [x, middle, middle.next_up(), middle.next_down(), x * 0.7, x / 3.0, 5.0 * x] {
                if !x.is_nan() {
                    assert_eq!(from_f32(x), f16::from_f32(x).to_bits(), "{x}");
                }
            }
        }
    }
}
