//! Positions where a text can be split without changing its tokens.

/// Pairs of adjacent bytes that occur in some token.
///
/// No token spans any other pair, so the parts on both sides can be encoded separately: long texts
/// without spaces and long words fall into parts that repeat.
pub(crate) struct SplitPoints(Box<[[bool; 256]; 256]>);

impl SplitPoints {
    pub fn new<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut split_points = Box::new([[false; 256]; 256]);
        for pair in tokens.flat_map(|token| token.windows(2)) {
            split_points[usize::from(pair[0])][usize::from(pair[1])] = true;
        }
        // Never split within a character.
        for byte in 0..256 {
            for next in 0x80..0xc0 {
                split_points[byte][next] = true;
            }
        }
        Self(split_points)
    }

    /// Calls `out` with the range of each part.
    pub fn split(&self, text: &[u8], mut out: impl FnMut(usize, usize)) {
        let mut start = 0;
        for (i, pair) in text.windows(2).enumerate() {
            if !self.0[usize::from(pair[0])][usize::from(pair[1])] {
                out(start, i + 1);
                start = i + 1;
            }
        }
        if start < text.len() {
            out(start, text.len());
        }
    }
}
