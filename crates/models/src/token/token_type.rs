//! Types of tokens.

/// The type of a token, numbered as in `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum TokenType {
    /// Token of the tokenizer's model.
    Normal = 1,
    /// Replaces text that the vocabulary cannot encode.
    Unknown = 2,
    /// Control token without text, such as BOS.
    Control = 3,
    /// Text that is matched before the tokenizer's model runs.
    UserDefined = 4,
    /// Unused id.
    Unused = 5,
    /// Byte fallback.
    Byte = 6,
}

impl TokenType {
    /// All types, in the order of their ids.
    pub const ALL: [Self; 6] =
        [Self::Normal, Self::Unknown, Self::Control, Self::UserDefined, Self::Unused, Self::Byte];

    /// Returns the type with an id; `None` for other ids, including 0 (undefined).
    pub fn from_id(id: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| i64::from(kind.id()) == id)
    }

    /// Returns the id in a file.
    pub const fn id(self) -> i32 {
        self as i32
    }

    /// Returns true for tokens without text.
    pub const fn is_special(self) -> bool {
        matches!(self, Self::Control | Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::TokenType;

    #[test]
    fn ids_match_the_format() {
        assert_eq!(TokenType::ALL.map(TokenType::id), [1, 2, 3, 4, 5, 6]);
        assert_eq!(TokenType::from_id(4), Some(TokenType::UserDefined));
        assert_eq!([0, 7, -1].map(TokenType::from_id), [None; 3]);
    }
}
