//! Byte fallback tokens of SentencePiece, such as `<0x0A>`.

/// Returns the token of a byte.
pub fn byte_token(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

/// Returns the byte of a byte fallback token; `None` for other texts. Accepts lower-case digits.
pub fn byte_of_token(token: &[u8]) -> Option<u8> {
    let digits = token.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let [high, low] = digits else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(*high)? << 4 | digit(*low)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_tokens_round_trip() {
        assert_eq!(byte_token(10), "<0x0A>");
        assert!((0..=255).all(|byte| byte_of_token(byte_token(byte).as_bytes()) == Some(byte)));
        assert_eq!(byte_of_token(b"<0x0a>"), Some(10));
        for text in ["<0x+A>", "<0xA>", "<0x00A>", "0x0A", "<0x0G>", ""] {
            assert_eq!(byte_of_token(text.as_bytes()), None, "{text}");
        }
    }
}
