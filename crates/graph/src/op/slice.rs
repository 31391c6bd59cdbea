//! Slices of groups.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::field::{is_one, one};
use crate::id::ValueId;
use crate::scope::{Result, Scope, product, require};
use crate::tensor::Shape;

/// Takes the elements from `start` to `start + len` of each group of a row.
///
/// - Inputs: `x` `[rows, n]`.
/// - Output: `[rows, groups len]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// Input.
    pub x: ValueId,
    /// Number of groups of a row, such as heads.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u32,
    /// First element.
    pub start: u32,
    /// Number of elements.
    pub len: u32,
}

impl Operation for Slice {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.input(self.x)?;
        let end = u64::from(self.start) + u64::from(self.len);
        let group_len = x.group_len(self.groups)?;
        require(end <= group_len.into(), || {
            format!("the slice ends at {end}; expected at most {group_len}")
        })?;
        Shape::new(x.rows, product(self.len.into(), self.groups.into())?)
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
    fn a_slice_stays_within_a_group() {
        let parts = Parts::new(&[8], &[]);
        let shape = |groups: u32, start: u32, len: u32| {
            parts.shape(json!({"op": "slice", "x": 0, "groups": groups, "start": start, "len": len}))
        };
        assert_eq!(shape(2, 1, 2), "tokens x 4");
        assert_eq!(shape(2, 1, 4), "the slice ends at 5; expected at most 4");
        assert_eq!(shape(1, u32::MAX, 2), "the slice ends at 4294967297; expected at most 8");
    }
}
