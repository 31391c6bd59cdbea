//! The alphabet of byte-level vocabularies: a printable character for each byte.
//!
//! Bytes that are printable in Latin-1 stand for themselves; the 68 others are the characters from
//! U+0100 on, in their order.

/// The bytes that are printable in Latin-1.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

/// The byte of each character below U+0144, where there is one.
const BYTES: [Option<u8>; 0x144] = {
    let mut bytes = [None; 0x144];
    let (mut byte, mut others) = (0, 0x100);
    while byte < 0x100 {
        if is_printable(byte as u8) {
            bytes[byte] = Some(byte as u8);
        } else {
            bytes[others] = Some(byte as u8);
            others += 1;
        }
        byte += 1;
    }
    bytes
};

/// Appends the bytes that a text stands for and returns true; or, if it has a character that
/// stands for no byte, the text itself: added tokens are written plainly.
pub(super) fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let (code, after) = match (first, after) {
            (0..0x80, _) => (u32::from(*first), after),
            (0xc2..=0xc5, [second @ 0x80..0xc0, after @ ..]) => {
                (u32::from(first & 0x1f) << 6 | u32::from(second & 0x3f), after)
            }
            // No character of the alphabet takes more bytes.
            _ => (u32::MAX, after),
        };
        let Some(Some(byte)) = BYTES.get(code as usize) else {
            out.truncate(start);
            out.extend_from_slice(text);
            return false;
        };
        out.push(*byte);
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::decode;

    fn decoded(text: &str) -> (bool, Vec<u8>) {
        let mut out = Vec::new();
        (decode(text.as_bytes(), &mut out), out)
    }

    #[test]
    fn characters_stand_for_bytes() {
        assert_eq!(decoded("Ġthe"), (true, b" the".to_vec()));
        assert_eq!(decoded("Ċ"), (true, b"\n".to_vec()));
        assert_eq!(decoded("Ã©"), (true, "é".into()));
        assert_eq!(decoded("Ń"), (true, vec![0xad]));
        assert_eq!(decoded("a b"), (false, b"a b".to_vec()));
        assert_eq!(decoded("<｜end▁"), (false, "<｜end▁".into()));
    }
}
