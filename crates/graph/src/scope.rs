//! Shape inference: the part of a graph that an operation sees, and checks on it.

use gguf::Finding;

use crate::id::{StateId, ValueId, WeightId};
use crate::tensor::{RowDim, Shape, State, Weight};

/// Maximum width of a value: far above any model, and low enough that sums of a few widths do not
/// overflow.
pub(crate) const MAX_WIDTH: u64 = 1 << 24;

pub(crate) type Result<T> = std::result::Result<T, Finding>;

/// The parts of a graph that the shape of an operation depends on.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'g> {
    /// Weights of the graph.
    pub weights: &'g [Weight],
    /// States of the graph.
    pub states: &'g [State],
    /// Shapes of the values before the operation.
    pub shapes: &'g [Shape],
    /// Whether the operation belongs to the encoder.
    pub is_encoder: bool,
    /// Width of the frames that the encoder reads; `None` if it reads no frames.
    pub features_width: Option<u32>,
}

impl<'g> Scope<'g> {
    /// Returns the shape of an input.
    pub(crate) fn input(&self, id: ValueId) -> Result<Shape> {
        let shape = self.shapes.get(id.0 as usize).copied();
        shape
            .ok_or_else(|| invalid(format!("value {} is not computed before this operation", id.0)))
    }

    /// Returns the shape of an input that must have one row per token.
    pub(crate) fn token_input(&self, id: ValueId) -> Result<Shape> {
        let shape = self.input(id)?;
        require(shape.rows == RowDim::Tokens, || {
            format!("value {} has {} as rows; expected tokens", id.0, shape.rows)
        })?;
        Ok(shape)
    }

    /// Returns the shape of two inputs that must have the same.
    pub(crate) fn equal_inputs(&self, a: ValueId, b: ValueId) -> Result<Shape> {
        let (a, b) = (self.input(a)?, self.input(b)?);
        require(a == b, || format!("the inputs have different shapes: {a} and {b}"))?;
        Ok(a)
    }

    /// Returns the rows of a value computed from token ids or positions.
    pub(crate) fn token_rows(&self) -> Result<RowDim> {
        let frames = self.is_encoder && self.features_width.is_some();
        require(!frames, || "an encoder of frames has no tokens".to_owned())?;
        Ok(RowDim::Tokens)
    }

    fn weight(&self, id: WeightId) -> Result<&'g Weight> {
        let weight = self.weights.get(id.0 as usize);
        weight.ok_or_else(|| invalid(format!("there is no weight {}", id.0)))
    }

    /// Returns the dimensions of a weight that has at most `N`, without checking their extents.
    pub(crate) fn extents<const N: usize>(&self, id: WeightId) -> Result<[u64; N]> {
        let shape = &self.weight(id)?.shape;
        require(shape.iter().skip(N).all(|extent| *extent == 1), || {
            format!("the weight {shape:?} has more than {N} dimensions")
        })?;
        Ok(std::array::from_fn(|axis| shape.get(axis).copied().unwrap_or(1)))
    }

    /// Returns the dimensions of a weight that has at most `N`, each from 1 to [`MAX_WIDTH`].
    pub(crate) fn dims<const N: usize>(&self, id: WeightId) -> Result<[u64; N]> {
        let extents = self.extents(id)?;
        require(extents.iter().all(|extent| (1..=MAX_WIDTH).contains(extent)), || {
            format!("the weight has shape {extents:?}; expected dimensions from 1 to {MAX_WIDTH}")
        })?;
        Ok(extents)
    }

    /// Returns the number of elements of a weight.
    pub(crate) fn elements(&self, id: WeightId) -> Result<u64> {
        self.weight(id)?.shape.iter().try_fold(1, |elements, extent| product(elements, *extent))
    }

    /// Requires a weight of `len` elements, whatever its dimensions.
    pub(crate) fn vector(&self, id: WeightId, len: u64) -> Result<()> {
        equal("number of elements of the weight", self.elements(id)?, len)
    }

    /// Requires the shape of a weight.
    pub(crate) fn weight_is(&self, id: WeightId, expected: &[u64]) -> Result<()> {
        let shape = &self.weight(id)?.shape;
        require(without_ones(shape) == without_ones(expected), || {
            format!("the weight has shape {shape:?}; expected {expected:?}")
        })
    }

    /// Requires the shape of an optional weight.
    pub(crate) fn optional_weight(&self, id: Option<WeightId>, expected: &[u64]) -> Result<()> {
        id.map_or(Ok(()), |id| self.weight_is(id, expected))
    }

    /// Returns a state.
    pub(crate) fn state(&self, id: StateId) -> Result<State> {
        let state = self.states.get(id.0 as usize).copied();
        state.ok_or_else(|| invalid(format!("there is no state {}", id.0)))
    }

    /// Requires a state.
    pub(crate) fn state_is(&self, id: StateId, expected: State) -> Result<()> {
        let state = self.state(id)?;
        require(state == expected, || format!("the state is {state}; expected {expected}"))
    }

    /// Requires a recurrent state of `len` floats.
    pub(crate) fn recurrent(&self, id: StateId, len: u64) -> Result<()> {
        let len = u32::try_from(len).map_err(|_| overflow())?;
        self.state_is(id, State::Recurrent { len })
    }

    /// Requires a history of `len` rows.
    pub(crate) fn row_history(&self, id: StateId, width: u32, len: u64) -> Result<()> {
        let len = u32::try_from(len).map_err(|_| overflow())?;
        self.state_is(id, State::RowHistory { width, len })
    }
}

impl Shape {
    /// Returns a shape, if its width is within limits.
    pub(crate) fn new(rows: RowDim, width: u64) -> Result<Self> {
        match u32::try_from(width) {
            Ok(narrow) if (1..=MAX_WIDTH).contains(&width) => Ok(Self { rows, width: narrow }),
            _ => Err(invalid(format!("the output has width {width}; expected 1 to {MAX_WIDTH}"))),
        }
    }

    /// Returns the length of one of `groups` equal groups of a row.
    pub(crate) fn group_len(self, groups: u32) -> Result<u32> {
        match self.width.checked_rem(groups) {
            Some(0) => Ok(self.width / groups),
            _ => Err(invalid(format!(
                "a row of {} is not divisible into {groups} groups",
                self.width
            ))),
        }
    }

    /// Requires the same rows as those of another value.
    pub(crate) fn rows_equal(self, other: Self) -> Result<()> {
        require(self.rows == other.rows, || {
            format!("the inputs have different rows: {} and {}", self.rows, other.rows)
        })
    }
}

/// Returns a shape without trailing dimensions of 1.
fn without_ones(shape: &[u64]) -> &[u64] {
    let len = shape.iter().rposition(|extent| *extent != 1).map_or(1, |last| last + 1);
    shape.get(..len).unwrap_or(&[1])
}

/// Returns the finding that an operation is invalid.
pub(crate) fn invalid(message: impl Into<Box<str>>) -> Finding {
    Finding::error("graph-invalid", message)
        .help("the graph of the file is damaged or was written by a faulty program")
}

/// Requires a condition.
pub(crate) fn require<M: Into<Box<str>>>(holds: bool, message: impl FnOnce() -> M) -> Result<()> {
    if holds { Ok(()) } else { Err(invalid(message())) }
}

/// Requires a number.
pub(crate) fn equal(name: &str, found: u64, expected: u64) -> Result<()> {
    require(found == expected, || format!("the {name} is {found}; expected {expected}"))
}

/// Requires a number above 0.
pub(crate) fn positive(name: &str, number: f32) -> Result<()> {
    require(number > 0.0, || format!("`{name}` is {number}; expected a number above 0"))
}

/// Requires a number of at least 0.
pub(crate) fn not_negative(name: &str, number: f32) -> Result<()> {
    require(number >= 0.0, || format!("`{name}` is {number}; expected at least 0"))
}

/// Requires a finite number.
pub(crate) fn finite(name: &str, number: f32) -> Result<()> {
    require(number.is_finite(), || format!("`{name}` is {number}; expected a finite number"))
}

/// Requires a count above 0.
pub(crate) fn nonzero(name: &str, count: u32) -> Result<()> {
    require(count > 0, || format!("`{name}` is 0; expected at least 1"))
}

/// Requires token ids in ascending order, which the runtime searches by bisection.
pub(crate) fn ascending<T>(name: &str, by_token: &[(u32, T)]) -> Result<()> {
    require(by_token.is_sorted_by(|(a, _), (b, _)| a < b), || {
        format!("the token ids of `{name}` are not in ascending order")
    })
}

/// Multiplies two sizes.
pub(crate) fn product(a: u64, b: u64) -> Result<u64> {
    a.checked_mul(b).ok_or_else(overflow)
}

fn overflow() -> Finding {
    invalid("a size overflows")
}
