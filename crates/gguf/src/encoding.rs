//! Encoding of numbers and lengths in a file: byte order and width of counts.

/// Byte order of the numbers in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first: almost every file.
    #[default]
    Little,
    /// Most significant byte first: files for s390x, AIX and other big-endian machines.
    Big,
}

/// Encoding of values: byte order and width of counts.
///
/// The default is version 3 little-endian: 64-bit lengths, least significant byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Encoding {
    /// Byte order of numbers.
    pub order: ByteOrder,
    /// True for version 1, where counts, lengths and dimensions have 32 bits instead of 64.
    pub counts_32bit: bool,
}

impl Default for Encoding {
    fn default() -> Self {
        Self { order: ByteOrder::Little, counts_32bit: false }
    }
}

impl Encoding {
    /// Returns the size of a count or length in bytes: 4 in version 1, else 8.
    pub const fn count_bytes(self) -> usize {
        if self.counts_32bit { 4 } else { 8 }
    }

    /// Reads a count at `pos`; `None` if it exceeds `bytes`.
    #[inline]
    pub fn count(self, bytes: &[u8], pos: usize) -> Option<u64> {
        if self.counts_32bit { self.u32(bytes, pos).map(u64::from) } else { self.u64(bytes, pos) }
    }

    /// Appends a count. Returns `None`, and appends nothing, if it does not fit.
    pub fn push_count(self, out: &mut Vec<u8>, count: u64) -> Option<()> {
        if self.counts_32bit {
            self.push(out, u32::try_from(count).ok()?.to_le_bytes());
        } else {
            self.push(out, count.to_le_bytes());
        }
        Some(())
    }

    /// Appends a length-prefixed string. Returns `None`, and appends nothing, if the length does
    /// not fit.
    ///
    /// In version 1 a final NUL is doubled: readers drop one NUL, because the tools of that time
    /// wrote one after every string.
    pub fn push_text(self, out: &mut Vec<u8>, text: &[u8]) -> Option<()> {
        let extra: &[u8] = if self.counts_32bit && text.ends_with(&[0]) { &[0] } else { &[] };
        self.push_count(out, (text.len() + extra.len()) as u64)?;
        out.extend_from_slice(text);
        out.extend_from_slice(extra);
        Some(())
    }

    /// Reads 32 bits at `pos`.
    #[inline]
    pub fn u32(self, bytes: &[u8], pos: usize) -> Option<u32> {
        self.number(bytes, pos).map(u32::from_le_bytes)
    }

    /// Reads 64 bits at `pos`.
    #[inline]
    pub fn u64(self, bytes: &[u8], pos: usize) -> Option<u64> {
        self.number(bytes, pos).map(u64::from_le_bytes)
    }

    /// Reads the `N` bytes of a number at `pos` and converts them to little-endian order.
    #[inline]
    pub fn number<const N: usize>(self, bytes: &[u8], pos: usize) -> Option<[u8; N]> {
        let mut number = *bytes.get(pos..)?.first_chunk::<N>()?;
        if self.order == ByteOrder::Big {
            number.reverse();
        }
        Some(number)
    }

    /// Appends a number given as little-endian bytes.
    pub fn push<const N: usize>(self, out: &mut Vec<u8>, mut number: [u8; N]) {
        if self.order == ByteOrder::Big {
            number.reverse();
        }
        out.extend_from_slice(&number);
    }
}
