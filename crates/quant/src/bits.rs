//! Bit packing of small integers. All block formats share one layout with two parameters:
//!
//! ```text
//! byte g*STRIDE + r, bits k*BITS ..   holds weight   g*STRIDE*(8/BITS) + k*STRIDE + r
//! ```
//!
//! With STRIDE 16 and BITS 4, the low nibbles of 16 bytes are weights 0 to 15 and the high nibbles
//! are weights 16 to 31. With STRIDE 1, neighbouring weights are neighbouring bits.

/// 1 in each byte: where neighbouring bytes hold neighbouring weights, the code works on eight
/// bytes at a time, since no field crosses a byte.
const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// Packs `BITS` bits of each level, starting at bit `from`.
#[inline(always)]
pub(crate) fn pack<const BITS: usize, const STRIDE: usize, const LEN: usize, const BYTES: usize>(
    levels: &[u8; LEN],
    from: u32,
) -> [u8; BYTES] {
    const { assert!(LEN * BITS == BYTES * 8 && BYTES.is_multiple_of(STRIDE)) }
    let mask = (1u64 << BITS) - 1;
    let mut packed = [0; BYTES];
    if STRIDE == 1 {
        for (bytes, levels) in packed.chunks_exact_mut(BITS).zip(levels.as_chunks().0) {
            let fields = (u64::from_le_bytes(*levels) >> from) & (mask * EACH_BYTE);
            bytes.copy_from_slice(&gather::<BITS>(fields).to_le_bytes()[..BITS]);
        }
        return packed;
    }
    let groups = packed.as_chunks_mut::<STRIDE>().0.iter_mut();
    for (bytes, levels) in groups.zip(levels.chunks_exact(STRIDE * 8 / BITS)) {
        for (k, levels) in levels.as_chunks::<STRIDE>().0.iter().enumerate() {
            if STRIDE.is_multiple_of(8) {
                let words = bytes.as_chunks_mut().0.iter_mut().zip(levels.as_chunks().0);
                for (bytes, levels) in words {
                    let fields = (u64::from_le_bytes(*levels) >> from) & (mask * EACH_BYTE);
                    let others = u64::from_le_bytes(*bytes);
                    *bytes = (others | fields << (k * BITS)).to_le_bytes();
                }
            } else {
                for (byte, level) in bytes.iter_mut().zip(levels) {
                    *byte |= ((level >> from) & mask as u8) << (k * BITS);
                }
            }
        }
    }
    packed
}

/// Unpacks the integers that [`pack`] packed, each in `0..1 << BITS`.
#[inline(always)]
pub(crate) fn unpack<
    const BITS: usize,
    const STRIDE: usize,
    const BYTES: usize,
    const LEN: usize,
>(
    packed: &[u8; BYTES],
) -> [u8; LEN] {
    const { assert!(LEN * BITS == BYTES * 8 && BYTES.is_multiple_of(STRIDE)) }
    let mask = (1u64 << BITS) - 1;
    let mut levels = [0; LEN];
    if STRIDE == 1 {
        for (bytes, levels) in packed.chunks_exact(BITS).zip(levels.as_chunks_mut().0) {
            let mut fields = [0; 8];
            fields[..BITS].copy_from_slice(bytes);
            *levels = spread::<BITS>(u64::from_le_bytes(fields)).to_le_bytes();
        }
        return levels;
    }
    let groups = packed.as_chunks::<STRIDE>().0.iter();
    for (bytes, levels) in groups.zip(levels.chunks_exact_mut(STRIDE * 8 / BITS)) {
        for (k, levels) in levels.as_chunks_mut::<STRIDE>().0.iter_mut().enumerate() {
            if STRIDE.is_multiple_of(8) {
                let words = levels.as_chunks_mut().0.iter_mut().zip(bytes.as_chunks().0);
                for (levels, bytes) in words {
                    let fields = u64::from_le_bytes(*bytes) >> (k * BITS);
                    *levels = (fields & (mask * EACH_BYTE)).to_le_bytes();
                }
            } else {
                for (level, byte) in levels.iter_mut().zip(bytes) {
                    *level = (byte >> (k * BITS)) & mask as u8;
                }
            }
        }
    }
    levels
}

/// Spreads eight adjacent fields to one byte each, by halving three times.
#[inline(always)]
fn spread<const BITS: usize>(mut fields: u64) -> u64 {
    if BITS == 1 {
        // Each byte gets a copy and masks its own bit; the sum carries that bit to the top.
        let own = fields.wrapping_mul(EACH_BYTE) & 0x8040_2010_0804_0201;
        return ((own + 0x7f * EACH_BYTE) >> 7) & EACH_BYTE;
    }
    for together in [4, 2, 1] {
        fields |= fields << (together * (8 - BITS));
        fields &= runs(together * BITS, together * 8);
    }
    fields
}

/// Gathers one field per byte into eight adjacent fields; the inverse of [`spread`].
#[inline(always)]
fn gather<const BITS: usize>(mut fields: u64) -> u64 {
    for together in [2, 4, 8] {
        fields |= fields >> (together / 2 * (8 - BITS));
        fields &= runs(together * BITS, together * 8);
    }
    fields
}

/// Returns a number with `ones` bits set at the bottom of each `period` bits.
#[inline(always)]
fn runs(ones: usize, period: usize) -> u64 {
    (u64::MAX >> (64 - ones)) * (u64::MAX / (u64::MAX >> (64 - period)))
}

/// Converts levels to floats after subtracting `zero`.
///
/// A separate loop over a whole block is long enough for the compiler to vectorize.
#[inline(always)]
pub(crate) fn floats<const LEN: usize>(levels: &[u8; LEN], zero: i32) -> [f32; LEN] {
    let mut floats = [0.0; LEN];
    for (x, &level) in floats.iter_mut().zip(levels) {
        *x = (i32::from(level) - zero) as f32;
    }
    floats
}

/// Adds the high bits of the levels to the low `BITS` bits.
#[inline(always)]
pub(crate) fn add_high_bits<const BITS: usize, const LEN: usize>(
    low: &mut [u8; LEN],
    high: &[u8; LEN],
) {
    const { assert!(LEN.is_multiple_of(8)) }
    for (low, high) in low.as_chunks_mut().0.iter_mut().zip(high.as_chunks().0) {
        let high = u64::from_le_bytes(*high) << BITS;
        *low = (u64::from_le_bytes(*low) | high).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_match_the_drawing() {
        let mut levels = [0u8; 32];
        levels[3] = 0xA5;
        levels[19] = 0x3C;
        let low: [u8; 16] = pack::<4, 16, _, _>(&levels, 0);
        let high: [u8; 16] = pack::<4, 16, _, _>(&levels, 4);
        assert_eq!((low[3], high[3]), (0xC5, 0x3A));
        let bits: [u8; 4] = pack::<1, 1, _, _>(&levels, 5);
        assert_eq!(bits, [1 << 3, 0, 1 << 3, 0]);
        let pairs: [u8; 8] = pack::<2, 1, _, _>(&levels, 2);
        assert_eq!(pairs, [1 << 6, 0, 0, 0, 3 << 6, 0, 0, 0]);
    }

    #[test]
    fn unpack_reverses_pack() {
        let levels: [u8; 256] = std::array::from_fn(|i| (i * 7 + i / 32) as u8 & 3);
        let packed: [u8; 64] = pack::<2, 32, _, _>(&levels, 0);
        assert_eq!(packed[5] >> 4 & 3, levels[64 + 5]);
        assert_eq!(unpack::<2, 32, _, 256>(&packed), levels);
        assert_eq!(unpack::<2, 1, _, 256>(&pack::<2, 1, _, 64>(&levels, 0)), levels);
        assert_eq!(unpack::<4, 1, _, 256>(&pack::<4, 1, _, 128>(&levels, 0)), levels);
        let odd = levels.map(|level| level & 1);
        assert_eq!(unpack::<1, 1, _, 256>(&pack::<1, 1, _, 32>(&levels, 0)), odd);
    }
}
