//! How a text became tokens, step by step: for those who show it.

use std::ops::Range;

/// How a text became tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The ids, as [`Tokenizer::encode`](crate::Tokenizer::encode) gives them.
    pub ids: Vec<u32>,
    /// The pieces that special tokens cut the text into, in order.
    pub pieces: Vec<Piece>,
}

/// A special token, or text between two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Whether it is a special token.
    pub special: bool,
    /// Which ids came of it.
    pub ids: Range<usize>,
    /// What the model cuts it into; `None` if it is a special token, or the model does not merge.
    pub words: Option<Vec<Word>>,
}

/// What is joined by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// What it begins as: characters, or bytes.
    pub symbols: Vec<Vec<u8>>,
    /// What is joined, in the order in which it is done. Empty also if it would be too much to tell.
    pub merges: Vec<Merge>,
    /// How many ids came of it.
    pub ids: usize,
}

/// Two neighbours that are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The left one's place among the symbols of that moment.
    pub at: usize,
    /// The left one.
    pub left: Vec<u8>,
    /// The right one.
    pub right: Vec<u8>,
    /// The token of both together.
    pub id: u32,
    /// The number of the merge in the list of the model; `None` if it goes by scores.
    pub rank: Option<u32>,
}

/// A word of so many symbols is not traced: the work grows with the square.
pub(crate) const LONGEST: usize = 2048;
