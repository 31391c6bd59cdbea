//! Multiplication by a weight, element by element.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope, equal, product};
use crate::tensor::Shape;

/// Multiplies each row by a weight element by element, broadcasting the narrower one.
///
/// - Inputs: `x` `[rows, n]`.
/// - Weights: `weight` `[n]`; `[m]`, where `m` divides `n`: each element multiplies one of `m` groups of the
///   row; or `[n, m]`: the row is repeated `m` times, and each copy multiplied by a row of the weight.
/// - Output: `[rows, n]`, or `[rows, n m]` if the row is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MulWeight {
    /// Input.
    pub x: ValueId,
    /// Factors.
    pub weight: WeightId,
}

impl Operation for MulWeight {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn weights(&self) -> Vec<WeightId> {
        vec![self.weight]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.input(self.x)?;
        let factors = scope.elements(self.weight)?;
        if factors < x.width.into() {
            x.group_len(u32::try_from(factors).unwrap_or(0))?;
            return Ok(x);
        }
        let copies = factors / u64::from(x.width);
        equal("number of elements of the weight", factors, product(copies, x.width.into())?)?;
        Shape::new(x.rows, factors)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn the_narrower_one_is_broadcast() {
        let parts = Parts::new(&[8], &[&[8], &[2], &[8, 3], &[3], &[12]]);
        let shape = |weight: u32| parts.shape(json!({"op": "mul_weight", "x": 0, "weight": weight}));
        assert_eq!(shape(0), "tokens x 8");
        assert_eq!(shape(1), "tokens x 8");
        assert_eq!(shape(2), "tokens x 24");
        assert_eq!(shape(3), "a row of 8 is not divisible into 3 groups");
        assert_eq!(shape(4), "the number of elements of the weight is 12; expected 8");
    }
}
