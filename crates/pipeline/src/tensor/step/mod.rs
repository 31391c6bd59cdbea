//! Transformations of a tensor between the checkpoint and the output.
//!
//! Steps are data: an architecture lists them, and the pipeline applies them to the rows that it
//! needs, without holding more than those rows in memory. In a vector, which has a single row, each
//! element counts as a row.

mod function;
mod integers;
mod read;

pub use function::Function;
use gguf::{Shape, TensorType};

use super::{Content, Tensor};
use crate::mismatch::TensorMismatch;

/// A transformation of a tensor. Shapes are in GGUF order: fastest dimension first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Interleaves the two halves of the rows of each head: converts the NeoX RoPE layout, in which
    /// Hugging Face stores llama's queries and keys, to the interleaved layout.
    InterleaveHalves {
        /// Number of heads that divide the rows evenly.
        heads: u64,
    },
    /// Sorts the rows of all groups by kind: each group holds rows of a first, a second and a third
    /// kind, such as the queries, keys and values of a fused QKV matrix.
    Regroup {
        /// Number of groups that divide the rows evenly.
        groups: u64,
        /// Rows of each kind in a group.
        kinds: [u64; 3],
    },
    /// Inverse of [`Step::InterleaveHalves`]: within each head, first the even rows, then the odd
    /// rows.
    SeparatePairs {
        /// Number of heads that divide the rows evenly.
        heads: u64,
    },
    /// Inverse of [`Step::Regroup`].
    Ungroup {
        /// Number of groups that divide the rows evenly.
        groups: u64,
        /// Rows of each kind in a group.
        kinds: [u64; 3],
    },
    /// Transposes a matrix of row blocks within each group of rows: value heads stored by key head
    /// become the first of each key head, then the second of each. Other rows of the group stay in
    /// place.
    Exchange {
        /// Number of groups that divide the rows evenly.
        groups: u64,
        /// First row of the matrix within a group.
        start: u64,
        /// Number of rows of the block matrix before, and of columns after.
        outer: u64,
        /// Number of columns of the block matrix before, and of rows after.
        inner: u64,
        /// Number of tensor rows per block.
        len: u64,
    },
    /// Transposes a matrix of column blocks within every row.
    ExchangeColumns {
        /// Number of rows of the block matrix before, and of columns after.
        outer: u64,
        /// Number of columns of the block matrix before, and of rows after.
        inner: u64,
        /// Number of tensor columns per block.
        len: u64,
    },
    /// Selects some rows of each group, for example one of the kinds that [`Step::Regroup`] sorts.
    Pick {
        /// Number of groups that divide the rows evenly.
        groups: u64,
        /// First row to select within each group.
        start: u64,
        /// Number of rows to select within each group.
        len: u64,
    },
    /// Transposes each matrix of the tensor.
    Transpose,
    /// Reinterprets the elements in another shape.
    Reshape {
        /// Shape before, as in current checkpoints. Shapes with the same number of elements are
        /// accepted too; the inverse restores this one.
        from: Shape,
        /// Shape after.
        to: Shape,
    },
    /// Applies a function to every element, in F32.
    Map(Function),
    /// Applies a function to every element of some rows of each group, in F32.
    MapRows {
        /// Number of groups that divide the rows evenly.
        groups: u64,
        /// First row within a group.
        start: u64,
        /// Number of rows within a group.
        len: u64,
        /// Function of an element.
        function: Function,
    },
    /// Decodes every element to F32.
    Decode,
    /// Converts integers of any width to I32.
    Whole,
    /// Prepends a slice of zeros along the slowest dimension.
    ZeroFirst,
    /// Inverse of [`Step::ZeroFirst`]: drops the first slice along the slowest dimension.
    WithoutFirst,
    /// Appends rows of zeros up to a minimum number of rows.
    Pad {
        /// Minimum number of rows.
        rows: u64,
    },
}

impl Tensor {
    /// Applies `step` to the tensor.
    ///
    /// # Errors
    /// Returns an error if the shape or the type does not allow the step.
    pub fn changed(self, step: Step) -> Result<Self, TensorMismatch> {
        let shape = step.shape_of(&self)?;
        Ok(Self {
            name: self.name.clone(),
            shape,
            stored_type: match step {
                Step::Map(_) | Step::MapRows { .. } | Step::Decode => TensorType::F32,
                Step::Whole => TensorType::I32,
                _ => self.stored_type,
            },
            content: Content::Changed { from: Box::new(self), step },
        })
    }
}

impl Step {
    /// Returns the inverse of the step; `None` if the step loses information. For [`Step::Pick`],
    /// see [`Tensor::interleaved`].
    pub fn inverse(self) -> Option<Self> {
        Some(match self {
            Self::InterleaveHalves { heads } => Self::SeparatePairs { heads },
            Self::SeparatePairs { heads } => Self::InterleaveHalves { heads },
            Self::Regroup { groups, kinds } => Self::Ungroup { groups, kinds },
            Self::Ungroup { groups, kinds } => Self::Regroup { groups, kinds },
            Self::Exchange { groups, start, outer, inner, len } => {
                Self::Exchange { groups, start, outer: inner, inner: outer, len }
            }
            Self::ExchangeColumns { outer, inner, len } => {
                Self::ExchangeColumns { outer: inner, inner: outer, len }
            }
            Self::Transpose => Self::Transpose,
            Self::Reshape { from, to } => Self::Reshape { from: to, to: from },
            Self::Map(function) => Self::Map(function.inverse()?),
            Self::MapRows { groups, start, len, function } => {
                Self::MapRows { groups, start, len, function: function.inverse()? }
            }
            // Programs ignore rows beyond the vocabulary.
            Self::Pad { .. } => self,
            // The integers fit in I32 without loss.
            Self::Whole => self,
            Self::ZeroFirst => Self::WithoutFirst,
            Self::WithoutFirst => Self::ZeroFirst,
            Self::Pick { .. } | Self::Decode => return None,
        })
    }

    /// Returns the shape after this step.
    fn shape_of(self, from: &Tensor) -> Result<Shape, TensorMismatch> {
        let shape = from.shape;
        let (rows, _) = from.units();
        let blocks =
            || TensorMismatch::from(format!("is stored as {}, in blocks", from.stored_type));
        if self.moves_rows() && shape.len() < 2 && from.stored_type.is_quantized() {
            return Err(blocks());
        }
        match self {
            Self::InterleaveHalves { heads } | Self::SeparatePairs { heads } => {
                divides(rows, heads, 2, "halves of heads")?;
                Ok(shape)
            }
            Self::Regroup { groups, kinds } | Self::Ungroup { groups, kinds } => {
                let group = divides(rows, groups, 1, "groups")?;
                if kinds.iter().sum::<u64>() != group {
                    return Err(format!(
                        "has groups of {group} rows; expected groups of {kinds:?}"
                    )
                    .into());
                }
                Ok(shape)
            }
            Self::Exchange { groups, start, outer, inner, len } => {
                let group = divides(rows, groups, 1, "groups")?;
                let blocks = outer.checked_mul(inner).and_then(|blocks| blocks.checked_mul(len));
                let end = blocks.and_then(|moved| moved.checked_add(start));
                if end.is_none_or(|end| end > group) || blocks == Some(0) {
                    let what = format!(
                        "has groups of {group} rows; expected {outer} by {inner} blocks of {len} from row {start}"
                    );
                    return Err(what.into());
                }
                Ok(shape)
            }
            Self::ExchangeColumns { outer, inner, len } => {
                let columns = shape.row_len();
                let blocks_of = outer.checked_mul(inner).and_then(|blocks| blocks.checked_mul(len));
                if blocks_of != Some(columns) || columns == 0 {
                    let what = format!(
                        "has {columns} columns; expected {outer} by {inner} blocks of {len}"
                    );
                    return Err(what.into());
                }
                let cuts_blocks =
                    from.stored_type.block().is_some_and(|(block, _)| len % block != 0);
                if cuts_blocks { Err(blocks()) } else { Ok(shape) }
            }
            Self::Pick { groups, start, len } => {
                let group = divides(rows, groups, 1, "groups")?;
                if start.checked_add(len).is_none_or(|end| end > group) {
                    let what = format!(
                        "has groups of {group} rows; expected at least {len} from row {start}"
                    );
                    return Err(what.into());
                }
                let mut dims = shape.to_vec();
                let changed = usize::from(dims.len() > 1);
                let matrices: u64 = shape.iter().skip(2).product();
                divides(groups, matrices, 1, "matrices")?;
                dims[changed] = groups / matrices * len;
                Ok(with_dims(&dims))
            }
            Self::Transpose => {
                let [columns, rows, rest @ ..] = &shape[..] else {
                    return Err("is a vector and cannot be transposed".into());
                };
                if from.stored_type.is_quantized() {
                    return Err(blocks());
                }
                Ok(with_dims(&[&[*rows, *columns], rest].concat()))
            }
            Self::Reshape { to, .. } => {
                if shape.elements() != to.elements() {
                    return Err(
                        format!("has the shape {shape}, which cannot be reshaped to {to}").into()
                    );
                }
                from.stored_type.byte_len(&to).map(|_| to).ok_or_else(blocks)
            }
            Self::Decode => Ok(shape),
            Self::Whole => integers::require(from).map(|()| shape),
            Self::ZeroFirst | Self::WithoutFirst => {
                let Some((parts, row)) = shape.split_last() else {
                    return Err("has no dimensions".into());
                };
                let parts = match self {
                    _ if from.stored_type.is_quantized() => return Err(blocks()),
                    Self::ZeroFirst => parts.checked_add(1),
                    _ => parts.checked_sub(1),
                };
                let dims = parts.map(|parts| [row, &[parts]].concat());
                dims.and_then(|dims| Shape::new(&dims)).ok_or_else(|| "has no parts".into())
            }
            Self::Pad { rows } => match (&shape[..], from.stored_type.is_quantized()) {
                (&[width, before], false) => Ok(with_dims(&[width, before.max(rows)])),
                _ => Err("is not a float matrix that rows can be appended to".into()),
            },
            Self::Map(_) => floats(from).map(|()| shape),
            Self::MapRows { groups, start, len, .. } => {
                let group = divides(rows, groups, 1, "groups")?;
                if start.checked_add(len).is_none_or(|end| end > group) {
                    let what = format!(
                        "has groups of {group} rows; expected at least {len} from row {start}"
                    );
                    return Err(what.into());
                }
                floats(from).map(|()| shape)
            }
        }
    }

    /// Whether the step moves rows without changing them.
    fn moves_rows(self) -> bool {
        match self {
            Self::InterleaveHalves { .. }
            | Self::SeparatePairs { .. }
            | Self::Regroup { .. }
            | Self::Ungroup { .. }
            | Self::Exchange { .. }
            | Self::Pick { .. } => true,
            Self::ExchangeColumns { .. }
            | Self::Transpose
            | Self::Reshape { .. }
            | Self::Map(_)
            | Self::MapRows { .. }
            | Self::Pad { .. }
            | Self::ZeroFirst
            | Self::WithoutFirst
            | Self::Whole
            | Self::Decode => false,
        }
    }
}

/// Returns an error if the elements are not floats.
fn floats(tensor: &Tensor) -> Result<(), TensorMismatch> {
    match tensor.stored_type {
        TensorType::F32 | TensorType::F16 | TensorType::BF16 | TensorType::F64 => Ok(()),
        other => Err(format!("is stored as {other}, not as floats").into()),
    }
}

/// Divides `total` evenly among `groups`, whose size must be a multiple of `multiple`.
fn divides(total: u64, groups: u64, multiple: u64, of: &str) -> Result<u64, TensorMismatch> {
    match groups.checked_mul(multiple) {
        Some(n) if n > 0 && total.is_multiple_of(n) => Ok(total / groups),
        _ => Err(format!("has {total} rows, which do not divide into {groups} {of}").into()),
    }
}

/// Shape with at most as many dimensions as the shape before, which had at most four.
fn with_dims(dims: &[u64]) -> Shape {
    Shape::new(dims).unwrap_or_else(|| unreachable!("{} dimensions of a shape", dims.len()))
}

#[cfg(test)]
mod tests;
