//! The types of tokens.

/// The type of a token, numbered as in `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum TokenType {
    /// Made and matched by the rules of the tokenizer.
    Normal = 1,
    /// Stands for what the vocabulary cannot spell.
    Unknown = 2,
    /// Steers the model, and is no text.
    Control = 3,
    /// Text that is matched before the rules apply.
    UserDefined = 4,
    /// An id without a meaning.
    Unused = 5,
    /// One byte of text that no other token covers.
    Byte = 6,
}

impl TokenType {
    /// All types, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Normal, Self::Unknown, Self::Control, Self::UserDefined, Self::Unused, Self::Byte];

    /// The type with a number; `None` for numbers that have no meaning, of which 0, undefined, is
    /// the only one that programs write.
    pub fn from_id(id: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| i64::from(kind.id()) == id)
    }

    /// The number in a file.
    pub const fn id(self) -> i32 {
        self as i32
    }

    /// True for tokens that stand for no text.
    pub const fn is_special(self) -> bool {
        matches!(self, Self::Control | Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::TokenType;

    #[test]
    fn numbers_are_those_of_files() {
        assert_eq!(TokenType::ALL.map(TokenType::id), [1, 2, 3, 4, 5, 6]);
        assert_eq!(TokenType::from_id(4), Some(TokenType::UserDefined));
        assert_eq!([0, 7, -1].map(TokenType::from_id), [None; 3]);
    }
}
