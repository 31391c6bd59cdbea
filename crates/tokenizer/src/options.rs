//! Tokenizer options.

/// Which implementation to follow if the model's reference tokenizer and llama.cpp differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// Reference tokenizer that the model was trained with.
    #[default]
    Original,
    /// llama.cpp: does not normalize text, simplifies some pre-tokenizers, has its own Unicode
    /// tables (15.1), and treats some texts as special tokens regardless of their type.
    LlamaCpp,
}

/// Options of [`Tokenizer::from_metadata`](crate::Tokenizer::from_metadata).
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenizerOptions {
    /// Implementation to follow.
    pub compat: Compat,
    /// Whether a BPE model's reference tokenizer normalizes text to NFC. Files do not state it; by
    /// default it is guessed from the names in them.
    pub normalize: Option<bool>,
}

/// Options for encoding; by default both are on, as for a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Add BOS and EOS as the model requires.
    pub add_special: bool,
    /// Parse control tokens in the text. User-defined tokens are always parsed.
    pub parse_special: bool,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { add_special: true, parse_special: true }
    }
}

/// Options for decoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Write control tokens instead of skipping them.
    pub special: bool,
}
