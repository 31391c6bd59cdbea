//! Concatenation of rows.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::field::{is_default, is_one, one};
use crate::id::ValueId;
use crate::scope::{Result, Scope, product};
use crate::tensor::Shape;

/// Concatenates groups: each group of `a` is followed by that of `b`, or by all of `b`.
///
/// - Inputs: `a` `[rows, n]`; `b` `[rows, m]`.
/// - Output: `[rows, n + m]`, with `broadcast` `[rows, n + groups m]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concat {
    /// First part of each group.
    pub a: ValueId,
    /// Second part of each group.
    pub b: ValueId,
    /// Number of groups of a row, such as heads.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u32,
    /// Whether all groups share `b`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub broadcast: bool,
}

impl Operation for Concat {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.a, self.b]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let (a, b) = (scope.input(self.a)?, scope.input(self.b)?);
        a.rows_equal(b)?;
        let second = if self.broadcast { b.width } else { b.group_len(self.groups)? };
        let group_len = u64::from(a.group_len(self.groups)?) + u64::from(second);
        Shape::new(a.rows, product(group_len, self.groups.into())?)
    }

    fn cost(&self, _: &CostScope<'_>) -> Work {
        Work::NONE
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn groups_are_concatenated() {
        let parts = Parts::new(&[8, 2], &[]);
        let shape = |groups: u32, broadcast: bool| {
            parts.shape(
                json!({"op": "concat", "a": 0, "b": 1, "groups": groups, "broadcast": broadcast}),
            )
        };
        assert_eq!(shape(2, false), "tokens x 10");
        assert_eq!(shape(4, true), "tokens x 16");
        assert_eq!(shape(4, false), "a row of 2 is not divisible into 4 groups");
    }
}
