//! The `--compat` flag of tokenizing commands.

use gguf_kit::tokens::Encoder;
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
    /// Opens the tokenizer of `source` as a conversion writes it.
    pub fn open(self, source: &str) -> Result<Tokenizer, Failure> {
        let (tokenizer, notes) = gguf_kit::tokens::open(source, self.options())?;
        terminal::notes(&notes);
        Ok(tokenizer)
    }

    /// Opens the tokenizer of `source`.
    pub fn encoder(self, source: &str) -> Result<Encoder, Failure> {
        let (encoder, notes) = Encoder::open(source, self.options())?;
        terminal::notes(&notes);
        Ok(encoder)
    }

    fn options(self) -> TokenizerOptions {
        let compat = match self {
            Self::Own => gguf_tokenizer::Compat::Original,
            Self::LlamaCpp => gguf_tokenizer::Compat::LlamaCpp,
        };
        TokenizerOptions { compat, normalize: None }
    }
}
