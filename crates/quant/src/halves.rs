//! Half precision to single and back without branches, so that compilers make vectors of it.

/// What the exponents of the two differ by, in its place.
const REBIAS: u32 = (127 - 15) << 23;

/// The smallest normal half, and infinity, with the mantissa moved to its place in a single.
const NORMAL: u32 = 0x0400 << 13;
const INFINITY: u32 = 0x7c00 << 13;

/// The number, exactly. A NaN becomes quiet, as the instructions of processors make it.
#[inline(always)]
pub(crate) fn to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7fff) << 13;
    // With a leading one, which is subtracted again, a subnormal number becomes a normal one.
    let one = REBIAS + NORMAL;
    let subnormal = f32::from_bits(magnitude + one) - f32::from_bits(one);
    let normal = magnitude + REBIAS;
    let quiet = if magnitude > INFINITY { 1 << 22 } else { 0 };
    let bits = if magnitude < NORMAL { subnormal.to_bits() } else { normal };
    let bits = if magnitude < INFINITY { bits } else { (normal + REBIAS) | quiet };
    f32::from_bits(sign | bits)
}

/// The nearest half of a number that is not NaN, ties to even; infinity beyond the largest.
#[inline(always)]
pub(crate) fn from_f32(x: f32) -> u16 {
    let sign = (x.to_bits() >> 16) as u16 & 0x8000;
    let magnitude = x.to_bits() & 0x7fff_ffff;
    // Adding 0.5 leaves as many bits of the sum as a subnormal half has.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0xfff + odd) >> 13;
    let bits = if magnitude < REBIAS + NORMAL { subnormal } else { normal };
    // The first single that is nearer to 65536 than to the largest half.
    let bits = if magnitude < 65520f32.to_bits() { bits } else { 0x7c00 };
    sign | bits as u16
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn every_half_and_what_is_between() {
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
