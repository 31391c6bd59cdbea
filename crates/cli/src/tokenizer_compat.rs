//! The `--compat` flag of tokenizing commands.

use gguf_tokenizer::{Tokenizer, TokenizerOptions};

use crate::failure::Failure;
use crate::terminal;

/// Tokenizer behavior where llama.cpp differs from the model's original tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TokenizerCompat {
    /// Original tokenizer of the model.
    Own,
    /// llama.cpp.
    #[value(name = "llama.cpp", alias = "official")]
    LlamaCpp,
}

impl TokenizerCompat {
    /// Opens the tokenizer of `source`.
    pub fn open(self, source: &str) -> Result<Tokenizer, Failure> {
        let compat = match self {
            Self::Own => gguf_tokenizer::Compat::Original,
            Self::LlamaCpp => gguf_tokenizer::Compat::LlamaCpp,
        };
        let options = TokenizerOptions { compat, normalize: None };
        let (tokenizer, notes) = gguf_kit::tokens::open(source, options)?;
        terminal::notes(&notes);
        Ok(tokenizer)
    }
}
