//! What formats do by instructions of vectors that compilers do not find.

/// Instructions that formats use.
pub trait Lookup: Copy {
    /// The byte of a table for each index, of which the lower 4 bits count.
    fn lookup(self, table: &[i8; 16], indices: &[u8; 32]) -> [u8; 32];

    /// Bytes with a sign as 16 bits.
    fn widen(self, bytes: [u8; 16]) -> [i16; 16];
}

impl Lookup for pulp::Scalar {
    #[inline(always)]
    fn lookup(self, table: &[i8; 16], indices: &[u8; 32]) -> [u8; 32] {
        indices.map(|index| table[usize::from(index & 15)] as u8)
    }

    #[inline(always)]
    fn widen(self, bytes: [u8; 16]) -> [i16; 16] {
        bytes.map(|byte| i16::from(byte as i8))
    }
}

#[cfg(target_arch = "x86_64")]
impl Lookup for pulp::x86::V3 {
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
}
