//! Codecs for every ggml block format, and the recipes that choose a type per tensor.
//!
//! A tensor's data is rows of blocks: a fixed number of weights, packed with what is needed to get
//! them back. [`decode_row`] and [`encode_row`] turn one row of any type into floats and back; the
//! bytes are those that the official encoder writes, on every machine. [`find_bad_block`] looks
//! for data that cannot be decoded to numbers; [`difference`] says how far two encodings are
//! apart. A [`recipe`] chooses the type of each tensor of a model; an [`imatrix`] says how much each
//! column matters.

mod bits;
mod blocks;
mod codec;
mod difference;
mod dispatch;
mod finite;
mod grids;
mod halves;
mod lanes;
mod repack;
mod search;

pub use codec::{BadBlock, Codec, CodecError, codec, decode_row, encode_row, find_bad_block};
pub use difference::{Difference, difference};
pub use dispatch::InstructionSet;
pub use repack::{repack, repacks};
