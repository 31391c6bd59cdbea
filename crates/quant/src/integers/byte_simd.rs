//! Byte operations that compilers do not vectorize by themselves.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::uint8x16_t;
#[cfg(target_arch = "x86_64")]
use std::hint::black_box;

use crate::bits;

/// Byte operations of one instruction set.
pub trait ByteSimd: Copy {
    /// Looks up each index in a table; only the lower 4 bits of an index count.
    fn lookup(self, table: &[i8; 16], indices: &[u8; 32]) -> [u8; 32];

    /// Sign-extends bytes to 16 bits.
    fn widen(self, bytes: [u8; 16]) -> [i16; 16];

    /// Expands each bit to a byte, lowest first: 255 for 1 and 0 for 0.
    fn spread(self, bits: u32) -> [u8; 32];

    /// Negates the signed bytes whose bit is set.
    fn negate(self, bytes: [u8; 32], bits: u32) -> [u8; 32];

    /// Joins eight 6-bit numbers from their lower 4 bits and their upper 2 bits, lowest first.
    #[inline(always)]
    fn join_sixes(self, low: u32, high: u32) -> [i16; 8] {
        // Spreads the fields of a word to one byte each.
        let low = u64::from(low);
        let low = (low | low << 16) & 0x0000_ffff_0000_ffff;
        let low = (low | low << 8) & 0x00ff_00ff_00ff_00ff;
        let low = (low | low << 4) & 0x0f0f_0f0f_0f0f_0f0f;
        let high = u64::from(high);
        let high = (high | high << 24) & 0x0000_00ff_0000_00ff;
        let high = (high | high << 12) & 0x000f_000f_000f_000f;
        let high = (high | high << 6) & 0x0303_0303_0303_0303;
        (low | high << 4).to_le_bytes().map(i16::from)
    }

    /// Adds the high bits of the levels to the low `BITS` bits.
    #[inline(always)]
    fn add_high_bits<const BITS: usize>(self, low: &mut [u8; 256], high: &[u8; 256]) {
        bits::add_high_bits::<BITS, _>(low, high);
    }
}

impl ByteSimd for pulp::Scalar {
    #[inline(always)]
    fn lookup(self, table: &[i8; 16], indices: &[u8; 32]) -> [u8; 32] {
        indices.map(|index| table[usize::from(index & 15)] as u8)
    }

    #[inline(always)]
    fn widen(self, bytes: [u8; 16]) -> [i16; 16] {
        bytes.map(|byte| i16::from(byte as i8))
    }

    #[inline(always)]
    fn spread(self, bits: u32) -> [u8; 32] {
        std::array::from_fn(|i| if bits >> i & 1 == 1 { 255 } else { 0 })
    }

    #[inline(always)]
    fn negate(self, bytes: [u8; 32], bits: u32) -> [u8; 32] {
        std::array::from_fn(|i| if bits >> i & 1 == 1 { bytes[i].wrapping_neg() } else { bytes[i] })
    }
}

#[cfg(target_arch = "x86_64")]
impl ByteSimd for pulp::x86::V3 {
    #[inline(always)]
    fn lookup(self, table: &[i8; 16], indices: &[u8; 32]) -> [u8; 32] {
        let table = self.avx2._mm256_broadcastsi128_si256(pulp::cast(*table));
        let low = self.avx2._mm256_and_si256(pulp::cast(*indices), self.avx._mm256_set1_epi8(15));
        pulp::cast(self.avx2._mm256_shuffle_epi8(table, low))
    }

    #[inline(always)]
    fn widen(self, bytes: [u8; 16]) -> [i16; 16] {
        pulp::cast(self.avx2._mm256_cvtepi8_epi16(pulp::cast(bytes)))
    }

    #[inline(always)]
    fn spread(self, bits: u32) -> [u8; 32] {
        // For each output byte, the source byte of its bit, and the mask of the bit.
        const PLACES: [u8; 32] = places();
        let all = self.avx._mm256_set1_epi32(bits as i32);
        let bytes = self.avx2._mm256_shuffle_epi8(all, pulp::cast(PLACES));
        let masks = self.avx._mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
        let found = self.avx2._mm256_and_si256(bytes, masks);
        pulp::cast(self.avx2._mm256_cmpeq_epi8(found, masks))
    }

    #[inline(always)]
    fn negate(self, bytes: [u8; 32], bits: u32) -> [u8; 32] {
        let ones = pulp::cast(self.spread(bits));
        let flipped = self.avx2._mm256_xor_si256(pulp::cast(bytes), ones);
        pulp::cast(self.avx2._mm256_sub_epi8(flipped, ones))
    }

    #[inline(always)]
    fn join_sixes(self, low: u32, high: u32) -> [i16; 8] {
        let (low, high) =
            (self.avx._mm256_set1_epi32(low as i32), self.avx._mm256_set1_epi32(high as i32));
        let low = self.avx2._mm256_srlv_epi32(low, pulp::cast([0, 4, 8, 12, 16, 20, 24, 28]));
        let high = self.avx2._mm256_srlv_epi32(high, pulp::cast([0, 2, 4, 6, 8, 10, 12, 14]));
        let low = self.avx2._mm256_and_si256(low, self.avx._mm256_set1_epi32(15));
        let high = self.avx2._mm256_and_si256(high, self.avx._mm256_set1_epi32(3));
        let all = self.avx2._mm256_or_si256(low, self.avx2._mm256_slli_epi32::<4>(high));
        let [low, high]: [std::arch::x86_64::__m128i; 2] = pulp::cast(all);
        pulp::cast(self.sse4_1._mm_packus_epi32(low, high))
    }
}

#[cfg(target_arch = "x86_64")]
impl ByteSimd for pulp::x86::V4 {
    #[inline(always)]
    fn lookup(self, table: &[i8; 16], indices: &[u8; 32]) -> [u8; 32] {
        (*self).lookup(table, indices)
    }

    #[inline(always)]
    fn widen(self, bytes: [u8; 16]) -> [i16; 16] {
        (*self).widen(bytes)
    }

    #[inline(always)]
    fn spread(self, bits: u32) -> [u8; 32] {
        (*self).spread(bits)
    }

    #[inline(always)]
    fn negate(self, bytes: [u8; 32], bits: u32) -> [u8; 32] {
        (*self).negate(bytes, bits)
    }

    #[inline(always)]
    fn join_sixes(self, low: u32, high: u32) -> [i16; 8] {
        (*self).join_sixes(low, high)
    }

    #[inline(always)]
    fn add_high_bits<const BITS: usize>(self, low: &mut [u8; 256], high: &[u8; 256]) {
        // `black_box` hides the origin of the operands; otherwise the compiler gathers words from
        // all over the block.
        bits::add_high_bits::<BITS, _>(black_box(low), black_box(high));
    }
}

#[cfg(target_arch = "aarch64")]
impl ByteSimd for pulp::aarch64::Neon {
    #[inline(always)]
    fn lookup(self, table: &[i8; 16], indices: &[u8; 32]) -> [u8; 32] {
        let table = pulp::cast(*table);
        let halves: [uint8x16_t; 2] = pulp::cast(*indices);
        pulp::cast(halves.map(
            #[inline(always)]
            |half| {
                let low = self.neon.vandq_u8(half, self.neon.vdupq_n_u8(15));
                self.neon.vqtbl1q_u8(table, low)
            },
        ))
    }

    #[inline(always)]
    fn widen(self, bytes: [u8; 16]) -> [i16; 16] {
        let bytes = pulp::cast(bytes);
        let low = self.neon.vmovl_s8(self.neon.vget_low_s8(bytes));
        pulp::cast([low, self.neon.vmovl_high_s8(bytes)])
    }

    #[inline(always)]
    fn spread(self, bits: u32) -> [u8; 32] {
        // For each output byte, the source byte of its bit, and the mask of the bit.
        const PLACES: [u8; 32] = places();
        let all = pulp::cast([bits.to_le(); 4]);
        let masks = pulp::cast([0x8040_2010_0804_0201_u64.to_le(); 2]);
        let places: [uint8x16_t; 2] = pulp::cast(PLACES);
        pulp::cast(places.map(
            #[inline(always)]
            |places| self.neon.vtstq_u8(self.neon.vqtbl1q_u8(all, places), masks),
        ))
    }

    #[inline(always)]
    fn negate(self, bytes: [u8; 32], bits: u32) -> [u8; 32] {
        let ones: [uint8x16_t; 2] = pulp::cast(self.spread(bits));
        let bytes: [uint8x16_t; 2] = pulp::cast(bytes);
        pulp::cast([0, 1].map(
            #[inline(always)]
            |i| self.neon.vsubq_u8(self.neon.veorq_u8(bytes[i], ones[i]), ones[i]),
        ))
    }
}

/// Returns the index of the byte that contains each of 32 bits.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn places() -> [u8; 32] {
    let mut places = [0; 32];
    let mut i = 0;
    while i < 32 {
        places[i] = (i / 8) as u8;
        i += 1;
    }
    places
}
