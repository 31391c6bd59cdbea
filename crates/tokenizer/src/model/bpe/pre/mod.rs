//! Pre-tokenizers: split a text into words as `tokenizer.ggml.pre` names it.

mod patterns;
mod scanner;
mod step;
mod table;

use gguf::Error;
use gguf_models::pre_tokenizer::aliases;
use step::Step;
use table::{IgnoreMerges, Row, TABLE};

use crate::error::unknown;
use crate::options::{Compat, TokenizerOptions};
use crate::special::PRE;
use crate::vocabulary::Vocabulary;

/// Encoding of text in a vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// Byte-level: one character per byte; merging begins with bytes.
    ByteLevel,
    /// Plain text, with spaces possibly written as U+2581; merging begins with characters.
    Characters { visible_spaces: bool },
}

/// A pre-tokenizer.
pub(super) struct PreTokenizer {
    pub alphabet: Alphabet,
    steps: Vec<Step>,
    row: &'static Row,
}

impl PreTokenizer {
    /// # Errors
    /// If the file names an unsupported pre-tokenizer.
    pub fn read(vocabulary: &Vocabulary<'_>, options: TokenizerOptions) -> Result<Self, Error> {
        let name = match vocabulary.model()? {
            "gemma4" => "gemma4",
            "whitespace" => "(words)",
            // The default of llama.cpp.
            _ => vocabulary.metadata.str(PRE).filter(|name| !name.is_empty()).unwrap_or("default"),
        };
        let canonical = aliases(name).first().unwrap_or(&name);
        let Some(row) = TABLE.iter().find(|row| row.names.contains(canonical)) else {
            return Err(unknown(
                PRE,
                name,
                "set the key to a supported name with the same rules (`gguf edit`), or convert \
                                 the model again",
            ));
        };
        let rules = match options.compat {
            Compat::Original => row.original,
            Compat::LlamaCpp => row.llama_cpp.unwrap_or(row.original),
        };
        let steps = rules.iter().map(|rule| Step::new(rule, options.compat)).collect();
        Ok(Self { alphabet: row.alphabet, steps, row })
    }

    /// Whether a word that is a token skips the merges.
    #[inline]
    pub fn ignores_merges(&self, word: &[u8]) -> bool {
        match self.row.ignore_merges {
            IgnoreMerges::Never => false,
            IgnoreMerges::LineBreaks => word.iter().all(|byte| *byte == b'\n'),
            IgnoreMerges::Always => true,
        }
    }

    /// Whether the model's reference tokenizer normalizes text to NFC, which files do not state.
    pub fn is_normalized(&self, vocabulary: &Vocabulary<'_>) -> bool {
        let name = vocabulary.metadata.str(PRE).unwrap_or_default();
        let architecture = vocabulary.metadata.architecture().unwrap_or_default();
        gguf_models::pre_tokenizer::composes(name, architecture)
    }

    /// Calls `out` with the range of each word; a word may end within a character.
    pub fn split(&self, text: &[u8], out: &mut dyn FnMut(usize, usize)) {
        split(&self.steps, text, 0, out);
    }
}

/// Applies each step to every part of the previous one as a text of its own.
fn split(steps: &[Step], text: &[u8], at: usize, out: &mut dyn FnMut(usize, usize)) {
    match steps {
        [] => out(at, at + text.len()),
        [last] => last.split(text, &mut |start, end| out(at + start, at + end)),
        [first, rest @ ..] => {
            first.split(text, &mut |start, end| split(rest, &text[start..end], at + start, out));
        }
    }
}
