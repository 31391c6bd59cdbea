//! Tokenizer models, one file or folder each.

pub(crate) mod bpe;
mod charsmap;
mod classes;
mod merge;
mod read;
pub(crate) mod rwkv;
mod spaces;
mod split_points;
pub(crate) mod spm;
pub(crate) mod unigram;
mod word_cache;
pub(crate) mod wordpiece;

pub(crate) use read::read;
#[cfg(feature = "huggingface")]
pub(crate) use spaces::to_spaces;

use crate::trace::Word;

/// A tokenizer model: encodes and decodes text between special tokens.
///
/// [`crate::special`] splits off special and user-defined tokens before.
pub(crate) trait Model: Send + Sync {
    /// Appends the ids of a text between special tokens.
    ///
    /// `at_start`: only special tokens precede it.
    fn encode(&self, text: &str, at_start: bool, out: &mut Vec<u32>);

    /// Traces the encoding of a text, word by word; `None` for models that do not merge.
    fn trace(&self, _text: &str) -> Option<Vec<Word>> {
        None
    }

    /// Appends the bytes of a token that is not special.
    ///
    /// `at_start`: no text precedes it. Ids outside the vocabulary have no bytes.
    fn decode(&self, id: u32, at_start: bool, out: &mut Vec<u8>);
}
