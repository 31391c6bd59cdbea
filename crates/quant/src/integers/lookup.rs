//! Tables of sixteen bytes, which vector instructions look up in at once.

/// Instructions that formats with a table use.
pub trait Lookup: Copy {
    /// The byte of a table for each index, of which the lower 4 bits count.
    fn lookup(self, table: &[i8; 16], indices: &[u8; 32]) -> [u8; 32];
}

impl Lookup for pulp::Scalar {
    #[inline(always)]
    fn lookup(self, table: &[i8; 16], indices: &[u8; 32]) -> [u8; 32] {
        indices.map(|index| table[usize::from(index & 15)] as u8)
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
}
