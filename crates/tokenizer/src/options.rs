//! What a tokenizer can be asked for.

/// Whom to follow where the model's own tokenizer and llama.cpp differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// The tokenizer that the model was trained with.
    #[default]
    Own,
    /// llama.cpp: it does not normalize text, simplifies some pre-tokenizers, has its own tables of
    /// Unicode (15.1), and knows some special tokens by their texts, whatever the file says of them.
    LlamaCpp,
}

/// How to read a tokenizer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whom to follow.
    pub compat: Compat,
    /// Whether the model's own tokenizer of byte pairs brings text to Unicode's form C. Files do
    /// not say; the names in them give a hint, which this overrules.
    pub normalize: Option<bool>,
}

/// How to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encode {
    /// Add the tokens that the model wants at the start and end of a text.
    pub add_special: bool,
    /// Take the texts of control tokens for these tokens. User-defined tokens always are.
    pub parse_special: bool,
}

/// What a prompt needs: both.
impl Default for Encode {
    fn default() -> Self {
        Self { add_special: true, parse_special: true }
    }
}

/// How to decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decode {
    /// Write the texts of control tokens, instead of leaving these out.
    pub special: bool,
}
