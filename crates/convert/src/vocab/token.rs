//! One entry of a vocabulary.

use gguf_models::token::TokenType;

/// A token as it stands in a GGUF.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Text, or for byte-level vocabularies its transcription.
    pub text: String,
    /// Merge priority of SentencePiece models; others do not store it.
    pub score: f32,
    /// Its type.
    pub kind: TokenType,
}

/// The score of tokens that are matched by their text only.
pub const ADDED_SCORE: f32 = -1000.0;

/// No model has nearly as many tokens; a larger size in a file would only cost memory.
pub(super) const MAX_TOKENS: u64 = 1 << 24;

impl Token {
    /// A token for an id that the tokenizer does not use.
    pub fn padding(id: usize, score: f32) -> Self {
        Self { text: format!("[PAD{id}]"), score, kind: TokenType::Unused }
    }

    /// A token that was added to the vocabulary after training, without a score.
    pub(crate) fn added(text: String, special: bool) -> Self {
        if special || looks_special(&text) {
            return Self { text, score: ADDED_SCORE, kind: TokenType::Control };
        }
        // Runtimes match these before SentencePiece writes its spaces.
        let text = text.replace('\u{2581}', " ");
        Self { text, score: ADDED_SCORE, kind: TokenType::UserDefined }
    }
}

/// True for texts that are control tokens whatever their file says: Command R, DeepSeek and Gemma
/// ship some that are not marked.
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
    fn added_tokens_are_control_by_flag_or_by_look() {
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
