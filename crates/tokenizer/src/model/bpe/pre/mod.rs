//! Pre-tokenizers: where `tokenizer.ggml.pre` cuts a text into words.

mod machine;
mod patterns;
mod step;
mod table;

use gguf::Error;
use gguf_models::pre_tokenizer::alike;
use step::Step;
use table::{Row, TABLE, Whole};

use crate::error::unknown;
use crate::options::{Compat, Options};
use crate::special::PRE;
use crate::vocabulary::Vocabulary;

/// How a vocabulary writes text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// A character of an alphabet for each byte; merges begin at bytes.
    Bytes,
    /// As it is, but for spaces that can be visible ones; merges begin at characters.
    Characters { visible_spaces: bool },
}

/// What is done to a text before any merge.
pub(super) struct Pre {
    pub spelling: Spelling,
    steps: Vec<Step>,
    row: &'static Row,
}

impl Pre {
    /// # Errors
    /// If the file names a pre-tokenizer that is not known here.
    pub fn read(vocabulary: &Vocabulary<'_>, options: Options) -> Result<Self, Error> {
        let name = match vocabulary.model()? {
            "gemma4" => "gemma4",
            "whitespace" => "(words)",
            // What runtimes take where the file is silent.
            _ => vocabulary.metadata.str(PRE).filter(|name| !name.is_empty()).unwrap_or("default"),
        };
        let usual = alike(name).first().unwrap_or(&name);
        let Some(row) = TABLE.iter().find(|row| row.names.contains(usual)) else {
            return Err(unknown(
                PRE,
                name,
                "set the key to the known name that cuts alike (`gguf edit`), or convert \
                       the model anew",
            ));
        };
        let cuts = match options.compat {
            Compat::Own => row.own,
            Compat::LlamaCpp => row.llama_cpp.unwrap_or(row.own),
        };
        let steps = cuts.iter().map(|cut| Step::new(cut, options.compat)).collect();
        Ok(Self { spelling: row.spelling, steps, row })
    }

    /// True if a word that is a token stays whole, whatever its merges make of it.
    #[inline]
    pub fn takes_whole(&self, word: &[u8]) -> bool {
        match self.row.whole {
            Whole::Never => false,
            Whole::LineBreaks => word.iter().all(|byte| *byte == b'\n'),
            Whole::Always => true,
        }
    }

    /// True if the model's own tokenizer normalizes text to form C. Files do not say.
    pub fn is_normalized(&self, vocabulary: &Vocabulary<'_>) -> bool {
        let name = vocabulary.metadata.str(PRE).unwrap_or_default();
        let architecture = vocabulary.metadata.architecture().unwrap_or_default();
        gguf_models::pre_tokenizer::composes(name, architecture)
    }

    /// Hands out the beginning and end of each word; not all are whole characters.
    pub fn cut(&self, text: &[u8], out: &mut dyn FnMut(usize, usize)) {
        cut(&self.steps, text, 0, out);
    }
}

/// Each step sees what the one before it cut as a text of its own.
fn cut(steps: &[Step], text: &[u8], at: usize, out: &mut dyn FnMut(usize, usize)) {
    match steps {
        [] => out(at, at + text.len()),
        [last] => last.cut(text, &mut |start, end| out(at + start, at + end)),
        [first, rest @ ..] => {
            first.cut(text, &mut |start, end| cut(rest, &text[start..end], at + start, out));
        }
    }
}
