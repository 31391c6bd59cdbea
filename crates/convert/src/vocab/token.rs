//! Token of a vocabulary.

use gguf_models::token::TokenType;

/// Token as a GGUF stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Text; for byte-level vocabularies, in the byte-level alphabet.
    pub text: String,
    /// Score of SentencePiece models. Other vocabularies do not store it.
    pub score: f32,
    /// Type.
    pub kind: TokenType,
}

/// Score of tokens that are matched only by their text.
pub const ADDED_SCORE: f32 = -1000.0;

/// Maximum number of tokens, which bounds memory use for damaged files.
pub(super) const MAX_TOKENS: u64 = 1 << 24;

impl Token {
    /// Returns a token for an unused id.
    pub fn padding(id: usize, score: f32) -> Self {
        Self { text: format!("[PAD{id}]"), score, kind: TokenType::Unused }
    }

    /// Returns a token that was added to the vocabulary after training, without a score.
    pub(crate) fn added(text: String, special: bool) -> Self {
        if special || looks_special(&text) {
            return Self { text, score: ADDED_SCORE, kind: TokenType::Control };
        }
        // Runtimes match these before SentencePiece replaces spaces.
        let text = text.replace('\u{2581}', " ");
        Self { text, score: ADDED_SCORE, kind: TokenType::UserDefined }
    }
}

/// Returns whether a text is a control token whatever the file says. Command R, DeepSeek and Gemma have unmarked
/// control tokens.
fn looks_special(text: &str) -> bool {
    let between = |start, end| text.starts_with(start) && text.ends_with(end);
    matches!(text, "<pad>" | "<mask>" | "<2mass>" | "[@BOS@]")
        || between("<|", "|>")
        || between("<\u{FF5C}", "\u{FF5C}>")
        || between("<unused", ">")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_tokens_are_control_tokens_by_flag_or_text() {
        for (text, special, kind) in [
            ("[INST]", true, TokenType::Control),
            ("[INST]", false, TokenType::UserDefined),
            ("<|end|>", false, TokenType::Control),
            ("<\u{FF5C}end\u{FF5C}>", false, TokenType::Control),
            ("<unused7>", false, TokenType::Control),
            ("<mask>", false, TokenType::Control),
        ] {
            assert_eq!(Token::added(text.to_owned(), special).kind, kind, "{text}");
        }
        assert_eq!(Token::added("\u{2581}\u{2581}".to_owned(), false).text, "  ");
        assert_eq!(Token::added("\u{2581}".to_owned(), true).text, "\u{2581}");
    }
}
