//! What happens to the elements of a tensor between the checkpoint and the output.
//!
//! Steps are data: a family lists them, the pipeline carries them out on the rows it needs, and
//! nothing is held that is larger than those. In a vector, whose only row has everything, an
//! element counts as a row.

mod function;
mod read;
mod whole;

pub use function::Function;
use gguf::{Shape, TensorType};

use crate::misfit::Misfit;
use crate::tensor::{Content, Tensor};

/// One change of a tensor. Shapes are as in the output: fastest dimension first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Within each of this many heads, the two halves of the rows interleaved: from rotary
    /// embedding by halves, as Hugging Face stores llama's queries and keys, to rotary embedding by
    /// pairs.
    InterleaveHalves {
        /// Heads: the rows are divided evenly among them.
        heads: u64,
    },
    /// Groups of rows that each begin with some rows of a first kind, then of a second and a third,
    /// become all rows of the first kind, then all of the second, then all of the third: queries,
    /// keys and values that are stored head by head.
    Regroup {
        /// Groups: the rows are divided evenly among them.
        groups: u64,
        /// Rows of each kind in a group.
        kinds: [u64; 3],
    },
    /// What undoes [`Step::InterleaveHalves`]: within each head the even rows, then the odd ones.
    SeparatePairs {
        /// Heads: the rows are divided evenly among them.
        heads: u64,
    },
    /// What undoes [`Step::Regroup`].
    Ungroup {
        /// Groups: the rows are divided evenly among them.
        groups: u64,
        /// Rows of each kind in a group.
        kinds: [u64; 3],
    },
    /// Within each group of rows, some of them as a matrix of blocks whose rows become columns: heads of
    /// values that are stored for one head of keys after the other become the first of each, then the
    /// second of each. The rows around them stay.
    Exchange {
        /// Groups: the rows are divided evenly among them.
        groups: u64,
        /// The first row of the matrix within a group.
        start: u64,
        /// Rows of the matrix before, and columns after.
        outer: u64,
        /// Columns of the matrix before, and rows after.
        inner: u64,
        /// Rows of the tensor in a block.
        len: u64,
    },
    /// The same with the columns of every row, all of which are such blocks.
    ExchangeColumns {
        /// Rows of the matrix of blocks before, and columns after.
        outer: u64,
        /// Columns of the matrix of blocks before, and rows after.
        inner: u64,
        /// Columns of the tensor in a block.
        len: u64,
    },
    /// Of each group of rows only some: one kind of those that [`Step::Regroup`] sorts.
    Pick {
        /// Groups: the rows are divided evenly among them.
        groups: u64,
        /// The first row to take of each group.
        start: u64,
        /// How many to take of each group.
        len: u64,
    },
    /// Rows become columns, in each matrix of the tensor.
    Transpose,
    /// The same elements in the same order, in another shape.
    Reshape {
        /// The shape before, as checkpoints of today have it. Others with as many elements are
        /// taken too; this one is what undoing leads to.
        from: Shape,
        /// The shape after.
        to: Shape,
    },
    /// Every element through a function, in F32.
    Map(Function),
    /// Every element of some rows of each group through a function, in F32; the others as they are.
    MapRows {
        /// Groups: the rows are divided evenly among them.
        groups: u64,
        /// The first of these rows within a group.
        start: u64,
        /// How many there are in a group.
        len: u64,
        /// What is done to their elements.
        function: Function,
    },
    /// Every element as F32, whatever it is stored as.
    Decode,
    /// Whole numbers of any size as those of 32 bits.
    Whole,
    /// Along the slowest dimension, zeros in front of all that is there: one more of its parts.
    ZeroFirst,
    /// What undoes [`Step::ZeroFirst`]: the first part along the slowest dimension is left out.
    WithoutFirst,
    /// Rows of zeros behind the others, where there are fewer.
    Pad {
        /// How many rows there are afterwards, if there were not as many before.
        rows: u64,
    },
}

impl Tensor {
    /// This tensor after `step`.
    ///
    /// # Errors
    /// If its shape does not allow the step.
    pub fn changed(self, step: Step) -> Result<Self, Misfit> {
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

    /// What counts as a row for a step that moves rows: their number, and their elements.
    pub(crate) fn units(&self) -> (u64, u64) {
        match self.shape.len() {
            0 | 1 => (self.shape.row_len(), 1),
            _ => (self.rows(), self.shape.row_len()),
        }
    }
}

impl Step {
    /// The step that undoes this one; `None` where it loses something: for what
    /// [`Step::Pick`] leaves see [`Tensor::interleaved`].
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
            // Programs read no further than the rows that they have tokens for.
            Self::Pad { .. } => self,
            // In the type that nothing is lost in.
            Self::Whole => self,
            Self::ZeroFirst => Self::WithoutFirst,
            Self::WithoutFirst => Self::ZeroFirst,
            Self::Pick { .. } | Self::Decode => return None,
        })
    }

    /// The shape after this step.
    fn shape_of(self, from: &Tensor) -> Result<Shape, Misfit> {
        let shape = from.shape;
        let (rows, _) = from.units();
        let blocks = || Misfit::from(format!("is stored as {}, in blocks", from.stored_type));
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
                    return Err(format!("has groups of {group} rows, not of {kinds:?}").into());
                }
                Ok(shape)
            }
            Self::Exchange { groups, start, outer, inner, len } => {
                let group = divides(rows, groups, 1, "groups")?;
                let blocks = outer.checked_mul(inner).and_then(|blocks| blocks.checked_mul(len));
                let end = blocks.and_then(|moved| moved.checked_add(start));
                if end.is_none_or(|end| end > group) || blocks == Some(0) {
                    let what = format!(
                        "has groups of {group} rows, not {outer} by {inner} blocks of {len} from {start} on"
                    );
                    return Err(what.into());
                }
                Ok(shape)
            }
            Self::ExchangeColumns { outer, inner, len } => {
                let columns = shape.row_len();
                let blocks_of = outer.checked_mul(inner).and_then(|blocks| blocks.checked_mul(len));
                if blocks_of != Some(columns) || columns == 0 {
                    let what = format!("has {columns} columns, not {outer} by {inner} times {len}");
                    return Err(what.into());
                }
                let cuts_blocks =
                    from.stored_type.block().is_some_and(|(block, _)| len % block != 0);
                if cuts_blocks { Err(blocks()) } else { Ok(shape) }
            }
            Self::Pick { groups, start, len } => {
                let group = divides(rows, groups, 1, "groups")?;
                if start.checked_add(len).is_none_or(|end| end > group) {
                    let what = format!("has groups of {group} rows, no {len} from {start} on");
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
                    return Err(format!("has the shape {shape}, which does not make {to}").into());
                }
                from.stored_type.byte_len(&to).map(|_| to).ok_or_else(blocks)
            }
            Self::Decode => Ok(shape),
            Self::Whole => whole::require(from).map(|()| shape),
            Self::ZeroFirst | Self::WithoutFirst => {
                let Some((parts, of_part)) = shape.split_last() else {
                    return Err("has no dimensions".into());
                };
                let parts = match self {
                    _ if from.stored_type.is_quantized() => return Err(blocks()),
                    Self::ZeroFirst => parts.checked_add(1),
                    _ => parts.checked_sub(1),
                };
                let dims = parts.map(|parts| [of_part, &[parts]].concat());
                dims.and_then(|dims| Shape::new(&dims)).ok_or_else(|| "has no parts".into())
            }
            Self::Pad { rows } => match (&shape[..], from.stored_type.is_quantized()) {
                (&[width, before], false) => Ok(with_dims(&[width, before.max(rows)])),
                _ => Err("is no matrix of floats, to which rows can be added".into()),
            },
            Self::Map(_) => floats(from).map(|()| shape),
            Self::MapRows { groups, start, len, .. } => {
                let group = divides(rows, groups, 1, "groups")?;
                if start.checked_add(len).is_none_or(|end| end > group) {
                    let what = format!("has groups of {group} rows, no {len} from {start} on");
                    return Err(what.into());
                }
                floats(from).map(|()| shape)
            }
        }
    }

    /// Whether rows go elsewhere as they are.
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

/// Fails if the elements are no floats.
fn floats(tensor: &Tensor) -> Result<(), Misfit> {
    match tensor.stored_type {
        TensorType::F32 | TensorType::F16 | TensorType::BF16 | TensorType::F64 => Ok(()),
        other => Err(format!("is stored as {other}, not as floats").into()),
    }
}

/// `total` divided evenly among `groups`, whose size is a multiple of `multiple`.
fn divides(total: u64, groups: u64, multiple: u64, of: &str) -> Result<u64, Misfit> {
    match groups.checked_mul(multiple) {
        Some(n) if n > 0 && total.is_multiple_of(n) => Ok(total / groups),
        _ => Err(format!("has {total} rows, which do not divide into {groups} {of}").into()),
    }
}

/// No more dimensions than the shape before, which had at most four.
fn with_dims(dims: &[u64]) -> Shape {
    Shape::new(dims).unwrap_or_else(|| unreachable!("{} dimensions of a shape", dims.len()))
}

#[cfg(test)]
mod tests;
