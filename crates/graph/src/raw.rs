//! An unchecked graph, as it is built and stored.

use serde::{Deserialize, Serialize};

use crate::id::ValueId;
use crate::op::{KvStore, Op};
use crate::tensor::{State, Weight};

/// An unchecked computation graph. [`Graph::new`](crate::Graph::new) checks it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawGraph {
    /// Architecture that the graph was built for; for information only.
    pub architecture: String,
    /// Tensors that the graph reads.
    pub weights: Vec<Weight>,
    /// Memory that persists between runs.
    pub states: Vec<State>,
    /// Program that runs once before the first token, or for tokens of which only features are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<Program>,
    /// Program that runs for each batch of tokens.
    pub main: Program,
}

/// Operations in the order of execution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Operations; each computes the value of its index.
    pub ops: Vec<Op>,
    /// Results of the program.
    pub outputs: Vec<Output>,
}

/// A result of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Meaning of the value.
    pub kind: OutputKind,
    /// The value.
    pub value: ValueId,
}

/// Meaning of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// Logits over the vocabulary.
    Logits,
    /// Hidden states after the final norm.
    Hidden,
    /// Pooled embedding of each sequence.
    Pooled,
    /// Logits over the classes of a classifier, for each sequence.
    Classes,
    /// Features for a draft model: hidden states of all tokens, or, of a draft model itself, of the tokens whose output is
    /// requested.
    Features,
}

impl Program {
    /// Returns the number of features per token that it reads; `None` if it reads tokens only.
    pub fn token_features_width(&self) -> Option<usize> {
        self.ops.iter().find_map(|op| match op {
            Op::TokenFeatures(features) => Some(features.width as usize),
            _ => None,
        })
    }

    /// Whether it stores keys and values of tokens in KV caches.
    pub(crate) fn stores_tokens(&self, states: &[State]) -> bool {
        self.ops.iter().any(|op| match op {
            Op::KvStore(KvStore { state, .. }) => {
                matches!(states.get(state.0 as usize), Some(State::KvCache { .. }))
            }
            _ => false,
        })
    }

    /// Returns the number of features per frame that it reads; `None` if it reads no frames.
    pub fn features_width(&self) -> Option<usize> {
        self.ops.iter().find_map(|op| match op {
            Op::Features(features) => Some(features.width as usize),
            _ => None,
        })
    }
}
