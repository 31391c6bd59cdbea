//! Tokens that spell one byte by its number, as SentencePiece has them: `<0x0A>`.

/// The token of a byte.
pub fn byte_token(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

/// The byte that a token stands for by its text; `None` for other texts. Small digits count too.
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
    fn tokens_and_bytes_belong_together() {
        assert_eq!(byte_token(10), "<0x0A>");
        assert!((0..=255).all(|byte| byte_of_token(byte_token(byte).as_bytes()) == Some(byte)));
        assert_eq!(byte_of_token(b"<0x0a>"), Some(10));
        for text in ["<0x+A>", "<0xA>", "<0x00A>", "0x0A", "<0x0G>", ""] {
            assert_eq!(byte_of_token(text.as_bytes()), None, "{text}");
        }
    }
}
