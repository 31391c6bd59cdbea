//! Where a text can be cut without a change to its tokens.

/// The pairs of bytes that stand beside each other in some token.
///
/// No token reaches across another pair, so that the parts on its sides can be encoded alone:
/// long texts without spaces as well as words fall into pieces that occur again and again.
pub(crate) struct SplitPoints(Box<[[bool; 256]; 256]>);

impl SplitPoints {
    pub fn new<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut split_points = Box::new([[false; 256]; 256]);
        for pair in tokens.flat_map(|token| token.windows(2)) {
            split_points[usize::from(pair[0])][usize::from(pair[1])] = true;
        }
        // Inside a character.
        for byte in 0..256 {
            for next in 0x80..0xc0 {
                split_points[byte][next] = true;
            }
        }
        Self(split_points)
    }

    /// Hands out the beginning and end of each part.
    pub fn cut(&self, text: &[u8], mut out: impl FnMut(usize, usize)) {
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
