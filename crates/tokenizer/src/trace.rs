//! Trace of an encoding, step by step.

use std::ops::Range;

/// Trace of the encoding of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Ids, as returned by [`Tokenizer::encode`](crate::Tokenizer::encode).
    pub ids: Vec<u32>,
    /// Fragments of the text between special tokens, and these tokens, in order.
    pub pieces: Vec<Piece>,
}

/// A special token, or the text between two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Whether it is a special token.
    pub special: bool,
    /// Range of its ids.
    pub ids: Range<usize>,
    /// Words of the text; `None` for a special token, or if the model does not merge.
    pub words: Option<Vec<Word>>,
}

/// A word, within which symbols merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Initial symbols: characters or bytes.
    pub symbols: Vec<Vec<u8>>,
    /// Merges in order. Empty for very long words.
    pub merges: Vec<Merge>,
    /// Number of ids.
    pub ids: usize,
}

/// A merge of two adjacent symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Index of the left symbol at that moment.
    pub at: usize,
    /// Text of the left symbol.
    pub left: Vec<u8>,
    /// Text of the right symbol.
    pub right: Vec<u8>,
    /// Token id of the merged symbol.
    pub id: u32,
    /// Rank of the merge in the model's list; `None` if the model uses scores.
    pub rank: Option<u32>,
}

/// Maximum number of symbols of a traced word: the work grows quadratically.
pub(crate) const MAX_TRACED_SYMBOLS: usize = 2048;
