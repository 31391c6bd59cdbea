//! Numbers that tokens have by their ids, and matrices that are chosen by numbers.

use serde::{Deserialize, Serialize};

use crate::raw::{ValueId, WeightId};

/// One number for each token, by its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Tokens and their numbers, each token once, in ascending order.
    pub marks: Vec<(u32, f32)>,
    /// The number of all other tokens.
    pub otherwise: f32,
}

/// Each row times one of several matrices: that of its number, rounded (halves away from 0), or the nearest
/// that there is. A row whose number is NaN takes the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberedProduct {
    /// What is multiplied.
    pub x: ValueId,
    /// A number for each row.
    pub number: ValueId,
    /// The matrices: `[width of x, width of the result, count]`.
    pub weight: WeightId,
}
