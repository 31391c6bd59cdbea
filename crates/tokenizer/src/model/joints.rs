//! Where a text can be cut without a change to its tokens.

/// The pairs of bytes that stand beside each other in some token.
///
/// No token reaches across another pair, so that the parts on its sides can be encoded alone:
/// long texts without spaces as well as words fall into pieces that occur again and again.
pub(crate) struct Joints(Box<[[bool; 256]; 256]>);

impl Joints {
    pub fn new<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut joints = Box::new([[false; 256]; 256]);
        for pair in tokens.flat_map(|token| token.windows(2)) {
            joints[usize::from(pair[0])][usize::from(pair[1])] = true;
        }
        // Inside a character.
        for byte in 0..256 {
            for next in 0x80..0xc0 {
                joints[byte][next] = true;
            }
        }
        Self(joints)
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
