//! Multiplication of two values.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Multiplies two values element by element, broadcasting `b`: `y[i] = a[i] b[floor(i m / n)]`.
///
/// - Inputs: `a` `[rows, n]`; `b` `[rows, m]`, where `m` divides `n`: each element of `b` multiplies one of
///   `m` groups of `a`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mul {
    /// First factor.
    pub a: ValueId,
    /// Second factor, as wide as the first or narrower.
    pub b: ValueId,
}

impl Operation for Mul {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.a, self.b]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let (a, b) = (scope.input(self.a)?, scope.input(self.b)?);
        a.rows_equal(b)?;
        a.group_len(b.width)?;
        Ok(a)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn the_second_factor_is_broadcast() {
        let parts = Parts::new(&[8, 2, 3], &[]);
        assert_eq!(parts.shape(json!({"op": "mul", "a": 0, "b": 1})), "tokens x 8");
        assert_eq!(
            parts.shape(json!({"op": "mul", "a": 0, "b": 2})),
            "a row of 8 is not divisible into 3 groups"
        );
    }
}
