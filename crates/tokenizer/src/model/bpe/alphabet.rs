//! Decoding of byte-level alphabets ([`gguf_models::token::byte_of`]).

use gguf_models::token::byte_of;

/// Appends the bytes that a text in the byte-level alphabet stands for and returns true. If a
/// character is not in the alphabet, appends the text itself and returns false: added tokens are
/// not encoded.
pub(super) fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let (code, after) = match (first, after) {
            (0..0x80, _) => (u32::from(*first), after),
            (0xc2..=0xc5, [second @ 0x80..0xc0, after @ ..]) => {
                (u32::from(first & 0x1f) << 6 | u32::from(second & 0x3f), after)
            }
            // No character of the alphabet has more than two bytes.
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
    fn decodes_byte_level_text() {
        assert_eq!(decoded("Ġthe"), (true, b" the".to_vec()));
        assert_eq!(decoded("Ċ"), (true, b"\n".to_vec()));
        assert_eq!(decoded("Ã©"), (true, "é".into()));
        assert_eq!(decoded("Ń"), (true, vec![0xad]));
        assert_eq!(decoded("a b"), (false, b"a b".to_vec()));
        assert_eq!(decoded("<｜end▁"), (false, "<｜end▁".into()));
    }
}
