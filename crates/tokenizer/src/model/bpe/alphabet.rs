//! Texts in the alphabet of byte-level vocabularies ([`gguf_models::token::byte_of`]).

use gguf_models::token::byte_of;

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
        let Some(byte) = char::from_u32(code).and_then(byte_of) else {
            out.truncate(start);
            out.extend_from_slice(text);
            return false;
        };
        out.push(byte);
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
