//! The kinds of tokenizers, one file or folder each.

pub(crate) mod bpe;
mod charsmap;
mod classes;
mod joints;
mod merge;
pub(crate) mod rwkv;
mod spaces;
pub(crate) mod spm;
pub(crate) mod unigram;
pub(crate) mod wordpiece;
mod words;

use gguf::Error;

use crate::Options;
use crate::error::unknown;
use crate::vocabulary::{MODEL, Vocabulary};

/// What every kind of tokenizer does: text to ids and back.
///
/// Special and user-defined tokens are cut out of the text before (see [`crate::special`]).
pub(crate) trait Model: Send + Sync {
    /// Appends the ids of a piece of text between special tokens.
    ///
    /// `at_start`: nothing but special tokens stands before it.
    fn encode(&self, text: &str, at_start: bool, out: &mut Vec<u32>);

    /// Appends the bytes that a token which is not special stands for.
    ///
    /// `at_start`: no text stands before it. Ids outside of the vocabulary stand for nothing.
    fn decode(&self, id: u32, at_start: bool, out: &mut Vec<u8>);
}

/// The model that `tokenizer.ggml.model` names.
pub(crate) fn read(vocabulary: &Vocabulary<'_>, options: Options) -> Result<Box<dyn Model>, Error> {
    Ok(match vocabulary.model()? {
        "llama" => Box::new(spm::Spm::read(vocabulary, options)?),
        "gpt2" | "gemma4" | "whitespace" => Box::new(bpe::Bpe::read(vocabulary, options)?),
        "bert" => Box::new(wordpiece::WordPiece::read(vocabulary, options)?),
        "t5" | "replit" => Box::new(unigram::Unigram::read(vocabulary, options)?),
        "rwkv" => Box::new(rwkv::Rwkv::read(vocabulary, options)?),
        other => {
            return Err(unknown(
                MODEL,
                other,
                "if it behaves as a known one does, set the key to that (`gguf edit`)",
            ));
        }
    })
}
