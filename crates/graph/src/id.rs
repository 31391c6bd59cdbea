//! Numbers by which a graph refers to its values, weights and states.

use serde::{Deserialize, Serialize};

/// Number of a value: the index of the operation of the same program that computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValueId(pub u32);

/// Number of a weight: its index in [`RawGraph::weights`](crate::RawGraph::weights).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WeightId(pub u32);

/// Number of a state: its index in [`RawGraph::states`](crate::RawGraph::states).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StateId(pub u32);
