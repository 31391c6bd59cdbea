//! A graph that nobody has checked, to build and to store.

use serde::{Deserialize, Serialize};

use crate::op::{Op, is_one, one};

/// A value: the number of the operation that makes it, in the same program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValueId(pub u32);

/// A weight: its number in [`RawGraph::weights`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WeightId(pub u32);

/// A state: its number in [`RawGraph::states`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StateId(pub u32);

/// What a model computes. [`Graph::new`](crate::Graph::new) checks it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawGraph {
    /// The architecture that it was built for, for people.
    pub architecture: String,
    /// The tensors that it needs.
    pub weights: Vec<Weight>,
    /// What is kept between runs.
    pub states: Vec<State>,
    /// What an encoder computes before the first token, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<Program>,
    /// What is computed for tokens.
    pub main: Program,
}

/// A tensor that a graph needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// Its name in the file.
    pub name: String,
    /// Its shape, fastest dimension first. Dimensions of 1 at the end do not count.
    pub shape: Vec<u64>,
}

/// What is kept of each sequence between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    /// Keys and values of all tokens so far, or of the last one of each whole block of tokens.
    Cache {
        /// Numbers of the keys of a token.
        keys: u32,
        /// Numbers of its values.
        values: u32,
        /// Tokens of a block.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        block: u32,
    },
    /// Keys and values that an encoder stored.
    Stored {
        /// Numbers of the keys of a frame.
        keys: u32,
        /// Numbers of its values.
        values: u32,
    },
    /// The ids of the last tokens, as far as there are some.
    Tokens {
        /// How many.
        count: u32,
    },
    /// The last rows of a value, 0 before the first token.
    Rows {
        /// Width of a row.
        width: u32,
        /// How many.
        rows: u32,
    },
    /// Numbers that an operation changes with each token. They begin as 0, if the operation does
    /// not say otherwise.
    Floats {
        /// How many.
        len: u32,
    },
}

/// Operations in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Each makes the value of its number.
    pub ops: Vec<Op>,
    /// What comes out.
    pub outputs: Vec<Output>,
}

/// A value that a program is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// What it is.
    pub kind: OutputKind,
    /// The value.
    pub value: ValueId,
}

/// What comes out of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// A score for each token of the vocabulary.
    Logits,
    /// What the last layer says of each token, after the last norm.
    Hidden,
    /// One row for each sequence, made of those of its tokens: an embedding.
    Pooled,
    /// A score for each class of a sequence.
    Classes,
}

impl State {
    /// A cache of every token.
    pub fn cache(keys: u32, values: u32) -> Self {
        Self::Cache { keys, values, block: 1 }
    }
}

impl Program {
    /// Numbers of a frame of the features that it reads; `None` if it reads none.
    pub fn features_width(&self) -> Option<usize> {
        self.ops.iter().find_map(|op| match op {
            Op::Features { width } => Some(*width as usize),
            _ => None,
        })
    }
}
