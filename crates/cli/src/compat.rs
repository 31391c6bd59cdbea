//! `--compat`, of the commands that tokenize.

use gguf_tokenizer::{Tokenizer, TokenizerOptions};

use crate::commands::print_notes;
use crate::failure::Failure;

/// Whom to follow where the model's own tokenizer and llama.cpp differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Compat {
    /// The tokenizer that the model was trained with.
    Own,
    /// llama.cpp.
    #[value(name = "llama.cpp", alias = "official")]
    LlamaCpp,
}

impl Compat {
    /// The tokenizer that `source` names.
    pub fn open(self, source: &str) -> Result<Tokenizer, Failure> {
        let compat = match self {
            Self::Own => gguf_tokenizer::Compat::Original,
            Self::LlamaCpp => gguf_tokenizer::Compat::LlamaCpp,
        };
        let options = TokenizerOptions { compat, normalize: None };
        let (tokenizer, notes) = gguf_kit::tokens::open(source, options)?;
        print_notes(&notes);
        Ok(tokenizer)
    }
}
