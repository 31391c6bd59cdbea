//! The kinds of tokenizers, one file or folder each.

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

use crate::trace::Word;

/// What every kind of tokenizer does: text to ids and back.
///
/// Special and user-defined tokens are cut out of the text before (see [`crate::special`]).
pub(crate) trait Model: Send + Sync {
    /// Appends the ids of a piece of text between special tokens.
    ///
    /// `at_start`: nothing but special tokens stands before it.
    fn encode(&self, text: &str, at_start: bool, out: &mut Vec<u32>);

    /// How a piece of text becomes ids, word by word; `None` for models that do not merge.
    fn trace(&self, _text: &str) -> Option<Vec<Word>> {
        None
    }

    /// Appends the bytes that a token which is not special stands for.
    ///
    /// `at_start`: no text stands before it. Ids outside of the vocabulary stand for nothing.
    fn decode(&self, id: u32, at_start: bool, out: &mut Vec<u8>);
}
