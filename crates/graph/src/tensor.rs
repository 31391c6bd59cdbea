//! The tensors of a graph: weights, states, and the shapes of values.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::field::{is_one, one};

/// A tensor of the file that a graph reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// Name of the tensor in the file.
    pub name: String,
    /// Shape of the tensor, fastest dimension first. Trailing dimensions of 1 are ignored.
    pub shape: Vec<u64>,
}

impl Weight {
    /// Returns the number of elements, saturating at the maximum.
    pub(crate) fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |elements: u64, extent| elements.saturating_mul(*extent))
    }
}

/// Memory of a sequence that persists between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    /// Keys and values of all tokens so far, or of the last token of each complete block.
    KvCache {
        /// Width of the keys of a token.
        key_width: u32,
        /// Width of the values of a token; 0 for a cache of indexer keys.
        value_width: u32,
        /// Tokens per block.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        block: u32,
    },
    /// Keys and values that the encoder computed, for cross-attention.
    EncoderKv {
        /// Width of the keys of a frame.
        key_width: u32,
        /// Width of the values of a frame.
        value_width: u32,
    },
    /// Ids of the last tokens.
    TokenHistory {
        /// Number of tokens.
        len: u32,
    },
    /// Last rows of a value, initially 0. A convolution state is one.
    RowHistory {
        /// Width of a row.
        width: u32,
        /// Number of rows.
        len: u32,
    },
    /// Recurrent state, initially 0 unless the operation says otherwise.
    Recurrent {
        /// Number of floats.
        len: u32,
    },
}

impl State {
    /// Returns a KV cache with a row for every token.
    pub fn kv_cache(key_width: u32, value_width: u32) -> Self {
        Self::KvCache { key_width, value_width, block: 1 }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KvCache { key_width, value_width, block } => {
                write!(f, "a KV cache of widths {key_width} and {value_width}")?;
                if *block == 1 { Ok(()) } else { write!(f, " with blocks of {block} tokens") }
            }
            Self::EncoderKv { key_width, value_width } => {
                write!(f, "an encoder KV store of widths {key_width} and {value_width}")
            }
            Self::TokenHistory { len } => write!(f, "a history of {len} tokens"),
            Self::RowHistory { width, len } => {
                write!(f, "a history of {len} rows of width {width}")
            }
            Self::Recurrent { len } => write!(f, "a recurrent state of {len} floats"),
        }
    }
}

/// Shape of a value: a matrix of floats, stored row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of rows, known when the graph runs.
    pub rows: RowDim,
    /// Number of floats in a row.
    pub width: u32,
}

/// Symbolic number of rows of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowDim {
    /// One row per token of the batch.
    Tokens,
    /// One row per token whose output is requested.
    Outputs,
    /// One row per sequence of the batch.
    Sequences,
    /// One row per `stride` frames of the encoder.
    Frames {
        /// Frames per row: there are `ceil(frames / stride)` rows.
        stride: u32,
    },
}

impl fmt::Display for RowDim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens => f.write_str("tokens"),
            Self::Outputs => f.write_str("outputs"),
            Self::Sequences => f.write_str("sequences"),
            Self::Frames { stride: 1 } => f.write_str("frames"),
            Self::Frames { stride } => write!(f, "frames/{stride}"),
        }
    }
}

impl fmt::Display for Shape {
    /// Formats the shape as `tokens x 256`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.rows, self.width)
    }
}
