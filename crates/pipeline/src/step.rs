//! What happens to the elements of a tensor between the checkpoint and the output.
//!
//! Steps are data: a family lists them, the pipeline carries them out on the rows it needs, and
//! nothing is held that is larger than those. In a vector, whose only row has everything, an
//! element counts as a row.

mod function;
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

    /// The row before this step that becomes row `row`, for steps that move whole rows.
    fn row_before(self, row: u64, rows_before: u64) -> u64 {
        match self {
            Self::InterleaveHalves { heads } => {
                let per_head = rows_before / heads;
                let (head, within) = (row / per_head, row % per_head);
                head * per_head + (within % 2) * (per_head / 2) + within / 2
            }
            Self::Regroup { groups, kinds } => {
                let (mut within_kinds, mut start, mut kind) = (row, 0, 0);
                while kind < 2 && within_kinds >= groups * kinds[kind] {
                    within_kinds -= groups * kinds[kind];
                    start += kinds[kind];
                    kind += 1;
                }
                let group = within_kinds / kinds[kind];
                group * (rows_before / groups) + start + within_kinds % kinds[kind]
            }
            Self::SeparatePairs { heads } => {
                let per_head = rows_before / heads;
                let (head, within) = (row / per_head, row % per_head);
                let half = per_head / 2;
                head * per_head + (within % half) * 2 + within / half
            }
            Self::Ungroup { groups, kinds } => {
                let size = rows_before / groups;
                let (group, mut within) = (row / size, row % size);
                let (mut start, mut kind) = (0, 0);
                while kind < 2 && within >= kinds[kind] {
                    within -= kinds[kind];
                    start += groups * kinds[kind];
                    kind += 1;
                }
                start + group * kinds[kind] + within
            }
            Self::Exchange { groups, start, outer, inner, len } => {
                let size = rows_before / groups;
                let (group, within) = (row / size, row % size);
                if !(start..start + outer * inner * len).contains(&within) {
                    return row;
                }
                let (block, rest) = ((within - start) / len, (within - start) % len);
                let before = block % outer * inner + block / outer;
                group * size + start + before * len + rest
            }
            Self::ExchangeColumns { outer, inner, .. } => {
                let (whole, block) = (row / (outer * inner), row % (outer * inner));
                whole * outer * inner + block % outer * inner + block / outer
            }
            Self::Pick { groups, start, len } => {
                row / len * (rows_before / groups) + start + row % len
            }
            Self::Transpose
            | Self::Reshape { .. }
            | Self::Map(_)
            | Self::MapRows { .. }
            | Self::Pad { .. }
            | Self::ZeroFirst
            | Self::WithoutFirst
            | Self::Whole
            | Self::Decode => row,
        }
    }

    /// Fills `buffer` with the bytes from `offset` on of `to`, which is `from` after this step.
    pub(crate) fn read_at(
        self,
        from: &Tensor,
        to: &Tensor,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), gguf::Error> {
        match self {
            Self::Transpose => read_transposed(from, to, buffer, offset),
            Self::Reshape { .. } => from.read_at(buffer, offset),
            Self::Map(function) => read_mapped(|_, x| function.of(x), from, buffer, offset),
            Self::MapRows { groups, start, len, function } => {
                let (rows, unit) = from.units();
                let (group, changed) = (rows / groups, start..start + len);
                let is_changed = |at| changed.contains(&(at / unit % group));
                let of = |at, x| if is_changed(at) { function.of(x) } else { x };
                read_mapped(of, from, buffer, offset)
            }
            Self::Decode => read_mapped(|_, x| x, from, buffer, offset),
            Self::Whole => whole::read(from, buffer, offset),
            Self::ZeroFirst => {
                let part = first_part(to);
                let zeros = part.saturating_sub(offset).min(buffer.len() as u64);
                let (zeros, stored) = buffer.split_at_mut(zeros as usize);
                zeros.fill(0);
                let behind = offset.saturating_sub(part);
                if stored.is_empty() { Ok(()) } else { from.read_at(stored, behind) }
            }
            Self::WithoutFirst => from.read_at(buffer, first_part(from) + offset),
            Self::Pad { .. } => {
                let end = from.bytes_of(from.shape.iter().product());
                let stored = end.saturating_sub(offset).min(buffer.len() as u64);
                let (stored, zeros) = buffer.split_at_mut(stored as usize);
                zeros.fill(0);
                if stored.is_empty() { Ok(()) } else { from.read_at(stored, offset) }
            }
            _ => self.read_moved(from, buffer, offset),
        }
    }

    /// Reads rows, or blocks of columns, that stand elsewhere before the step, in runs as long as they make.
    fn read_moved(
        self,
        from: &Tensor,
        mut buffer: &mut [u8],
        mut offset: u64,
    ) -> Result<(), gguf::Error> {
        let (rows_before, unit_len) = match self {
            Self::ExchangeColumns { len, .. } => (from.shape.iter().product::<u64>() / len, len),
            _ => from.units(),
        };
        let unit_bytes = from.bytes_of(unit_len);
        while !buffer.is_empty() {
            let (unit, within) = (offset / unit_bytes, offset % unit_bytes);
            let start = self.row_before(unit, rows_before);
            let mut units = 1;
            while units * unit_bytes < within + buffer.len() as u64
                && self.row_before(unit + units, rows_before) == start + units
            {
                units += 1;
            }
            let len = (units * unit_bytes - within).min(buffer.len() as u64);
            let (run, rest) = buffer.split_at_mut(len as usize);
            from.read_at(run, start * unit_bytes + within)?;
            buffer = rest;
            offset += len;
        }
        Ok(())
    }
}

/// Bytes of the first part of a tensor along its slowest dimension.
fn first_part(tensor: &Tensor) -> u64 {
    tensor.bytes_of(tensor.shape.iter().rev().skip(1).product())
}

/// Rows of a transposed tensor are columns of `from`: a strip of them is read, then turned.
fn read_transposed(
    from: &Tensor,
    to: &Tensor,
    buffer: &mut [u8],
    offset: u64,
) -> Result<(), gguf::Error> {
    let element = from.bytes_of(1);
    let (columns, rows) = (from.shape.row_len(), to.shape.row_len());
    let row_bytes = rows * element;
    let mut strip = Vec::new();
    let (mut at, end) = (offset, offset + buffer.len() as u64);
    while at < end {
        let (matrix, column) = (at / row_bytes / columns, at / row_bytes % columns);
        let last = (end.div_ceil(row_bytes) - matrix * columns).min(columns);
        from.read_columns(column..last, matrix * rows, rows, &mut strip)?;
        let width = ((last - column) * element) as usize;
        let until = end.min((matrix * columns + last) * row_bytes);
        let turned = buffer[(at - offset) as usize..(until - offset) as usize]
            .chunks_exact_mut(element as usize);
        for (out, place) in turned.zip(at % row_bytes / element..) {
            let (column, row) = ((place / rows) as usize, (place % rows) as usize);
            let start = row * width + column * element as usize;
            out.copy_from_slice(&strip[start..start + element as usize]);
        }
        at = until;
    }
    Ok(())
}

/// Decodes elements, changes each, by its number in the tensor too, and leaves them as F32.
fn read_mapped(
    function: impl Fn(u64, f32) -> f32,
    from: &Tensor,
    buffer: &mut [u8],
    offset: u64,
) -> Result<(), gguf::Error> {
    let first = offset / size_of::<f32>() as u64;
    let end = first + (buffer.len() / size_of::<f32>()) as u64;
    // Blocks are decoded whole. The shape of a tensor is a whole number of them.
    let block = from.stored_type.block().map_or(1, |(elements, _)| elements);
    let start = first - first % block;
    let elements = end.next_multiple_of(block) - start;
    let mut stored = vec![0; from.bytes_of(elements) as usize];
    from.read_at(&mut stored, from.bytes_of(start))?;
    let mut values = vec![0.0; elements as usize];
    gguf_quant::decode_row(from.stored_type, &stored, &mut values)
        .map_err(|fault| gguf::Error::weights(&from.name, fault.to_string()))?;
    let values = &values[(first - start) as usize..];
    for ((out, x), at) in buffer.chunks_exact_mut(size_of::<f32>()).zip(values).zip(first..) {
        out.copy_from_slice(&function(at, *x).to_le_bytes());
    }
    Ok(())
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
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tensor::Stored;

    fn tensor(shape: &[u64], file: &[u8]) -> Tensor {
        let at = Stored { source: Arc::new(file.to_vec()), offset: 0 };
        Tensor::stored("t", Shape::new(shape).unwrap(), TensorType::I8, at)
    }

    /// The elements, which must be the same however the reading is cut up.
    fn read(tensor: &Tensor) -> Vec<u8> {
        let mut whole = vec![0; tensor.shape.iter().product::<u64>() as usize];
        tensor.read_at(&mut whole, 0).unwrap();
        for piece in 1..whole.len() {
            let mut pieces = vec![0; whole.len()];
            for (i, buffer) in pieces.chunks_mut(piece).enumerate() {
                tensor.read_at(buffer, (i * piece) as u64).unwrap();
            }
            assert_eq!(pieces, whole, "in pieces of {piece}");
        }
        whole
    }

    fn changed(shape: &[u64], step: Step) -> Result<(Vec<u64>, Vec<u8>), Misfit> {
        let file: Vec<u8> = (0..shape.iter().product::<u64>() as u8).collect();
        let tensor = tensor(shape, &file).changed(step)?;
        Ok((tensor.shape.to_vec(), read(&tensor)))
    }

    #[test]
    fn halves_of_each_head_interleave() {
        let step = Step::InterleaveHalves { heads: 2 };
        let rows = vec![0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15];
        assert_eq!(changed(&[2, 8], step), Ok((vec![2, 8], rows)));
        let elements = vec![0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15];
        assert_eq!(changed(&[16], step), Ok((vec![16], elements)));
        assert!(changed(&[2, 6], step).unwrap_err().to_string().contains("do not divide"));
    }

    #[test]
    fn kinds_of_rows_are_sorted() {
        // Two groups of two queries, a key and a value.
        let step = Step::Regroup { groups: 2, kinds: [2, 1, 1] };
        assert_eq!(changed(&[8], step), Ok((vec![8], vec![0, 1, 4, 5, 2, 6, 3, 7])));
        let rows = vec![0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];
        assert_eq!(changed(&[2, 8], step), Ok((vec![2, 8], rows)));
        assert!(changed(&[6], step).unwrap_err().to_string().contains("groups of 3 rows"));
    }

    #[test]
    fn blocks_of_rows_change_places() {
        // Behind two rows, three blocks of one for each of two.
        let step = Step::Exchange { groups: 1, start: 2, outer: 2, inner: 3, len: 1 };
        assert_eq!(changed(&[8], step), Ok((vec![8], vec![0, 1, 2, 5, 3, 6, 4, 7])));
        // In each of two groups, pairs come apart and the last row stays.
        let step = Step::Exchange { groups: 2, start: 0, outer: 2, inner: 2, len: 1 };
        assert_eq!(changed(&[10], step), Ok((vec![10], vec![0, 2, 1, 3, 4, 5, 7, 6, 8, 9])));
        let beyond = Step::Exchange { groups: 2, start: 2, outer: 2, inner: 2, len: 1 };
        assert!(changed(&[10], beyond).unwrap_err().to_string().contains("groups of 5 rows"));
    }

    #[test]
    fn blocks_of_columns_change_places() {
        let step = Step::ExchangeColumns { outer: 2, inner: 3, len: 1 };
        let (shape, moved) = changed(&[6, 2], step).unwrap();
        assert_eq!(shape, [6, 2]);
        assert_eq!(moved, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
        let step = Step::ExchangeColumns { outer: 2, inner: 2, len: 2 };
        assert_eq!(changed(&[8, 1], step).unwrap().1, [0, 1, 4, 5, 2, 3, 6, 7]);
        assert!(changed(&[6, 2], step).is_err());
    }

    #[test]
    fn one_kind_of_rows_is_picked() {
        let step = Step::Pick { groups: 2, start: 2, len: 1 };
        assert_eq!(changed(&[8], step), Ok((vec![2], vec![2, 6])));
        assert_eq!(changed(&[2, 8], step), Ok((vec![2, 2], vec![4, 5, 12, 13])));
        assert_eq!(changed(&[1, 4, 2], step), Ok((vec![1, 1, 2], vec![2, 6])));
        let beyond = Step::Pick { groups: 2, start: 3, len: 2 };
        assert!(changed(&[8], beyond).unwrap_err().to_string().contains("no 2 from 3 on"));
    }

    #[test]
    fn steps_are_undone() {
        let file: Vec<u8> = (0..48).collect();
        for step in [
            Step::InterleaveHalves { heads: 2 },
            Step::Regroup { groups: 2, kinds: [2, 4, 6] },
            Step::Exchange { groups: 2, start: 1, outer: 2, inner: 5, len: 1 },
            Step::ExchangeColumns { outer: 2, inner: 1, len: 1 },
            Step::Transpose,
            Step::ZeroFirst,
        ] {
            let undone = step.inverse().unwrap();
            assert_eq!(undone.inverse(), Some(step));
            let there_and_back = tensor(&[2, 24], &file)
                .changed(step)
                .and_then(|tensor| tensor.changed(undone))
                .unwrap();
            assert_eq!(read(&there_and_back), file, "{step:?}");
        }
    }

    #[test]
    fn each_matrix_is_transposed() {
        let turned = vec![0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11];
        assert_eq!(changed(&[3, 2, 2], Step::Transpose), Ok((vec![2, 3, 2], turned)));
        assert!(changed(&[3], Step::Transpose).is_err());
    }

    #[test]
    fn zeros_come_first() {
        let rows = vec![0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(changed(&[2, 2, 2], Step::ZeroFirst), Ok((vec![2, 2, 3], rows)));
        let (shape, rest) = changed(&[2, 2, 2], Step::WithoutFirst).unwrap();
        assert_eq!((shape, rest), (vec![2, 2, 1], vec![4, 5, 6, 7]));
    }

    #[test]
    fn steps_follow_one_another() {
        let file: Vec<u8> = (0..12).collect();
        let [before, shape] = [&[4, 3][..], &[2, 3, 2]].map(|dims| Shape::new(dims).unwrap());
        let twice = tensor(&[3, 4], &file)
            .changed(Step::Pick { groups: 1, start: 0, len: 4 })
            .and_then(|tensor| tensor.changed(Step::Transpose))
            .and_then(|tensor| tensor.changed(Step::Reshape { from: before, to: shape }))
            .and_then(|tensor| tensor.changed(Step::Transpose))
            .unwrap();
        assert_eq!(read(&twice), [0, 6, 1, 3, 9, 4, 7, 2, 8, 10, 5, 11]);
    }

    #[test]
    fn blocks_are_decoded_wherever_reading_begins() {
        // Two rows of two blocks: a scale of 2, then 32 numbers.
        let block = |first: u8| [vec![0x00, 0x40], (first..first + 32).collect()].concat();
        let file = [0, 32, 64, 90].map(block).concat();
        let at = Stored { source: Arc::new(file), offset: 0 };
        let blocks = Tensor::stored("t", Shape::new(&[64, 2]).unwrap(), TensorType::Q8_0, at);
        assert!(
            blocks
                .clone()
                .changed(Step::Transpose)
                .err()
                .unwrap()
                .to_string()
                .contains("in blocks")
        );
        let decoded = blocks.changed(Step::Decode).unwrap();
        let floats = |tensor: &Tensor, first: u64, len: usize| {
            let mut bytes = vec![0; len * 4];
            tensor.read_at(&mut bytes, first * 4).unwrap();
            let floats = bytes.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
            floats.collect::<Vec<_>>()
        };
        assert_eq!(floats(&decoded, 31, 3), [62.0, 64.0, 66.0]);
        assert_eq!(floats(&decoded, 64, 1), [128.0]);
        let turned = decoded.changed(Step::Transpose).unwrap();
        assert_eq!(floats(&turned, 63, 4), [190.0, 64.0, 180.0, 66.0]);
        assert_eq!(turned.rows_of_a_block(), 32);
    }

    #[test]
    fn functions_are_computed_in_f32() {
        let file: Vec<u8> = [0.5f32, -1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let at = Stored { source: Arc::new(file), offset: 0 };
        let tensor = Tensor::stored("t", Shape::new(&[2]).unwrap(), TensorType::F32, at);
        let mapped = tensor.changed(Step::Map(Function::PlusOne)).unwrap();
        let mut out = [0; 4];
        mapped.read_at(&mut out, 4).unwrap();
        assert_eq!(f32::from_le_bytes(out), 0.0);
        mapped.read_at(&mut out, 0).unwrap();
        assert_eq!(f32::from_le_bytes(out), 1.5);
    }

    #[test]
    fn some_rows_are_changed() {
        let file: Vec<u8> = (0..6u8).flat_map(|x| f32::from(x).to_le_bytes()).collect();
        let at = Stored { source: Arc::new(file), offset: 0 };
        let tensor = Tensor::stored("t", Shape::new(&[2, 3]).unwrap(), TensorType::F32, at);
        let step =
            |start, len| Step::MapRows { groups: 1, start, len, function: Function::Times(10.0) };
        let changed = tensor.clone().changed(step(1, 1)).unwrap();
        let mut out = [0; 16];
        changed.read_at(&mut out, 4).unwrap();
        let floats = out.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
        assert_eq!(floats.collect::<Vec<_>>(), [1.0, 20.0, 30.0, 4.0]);
        let misfit = tensor.changed(step(2, 2)).err().unwrap().to_string();
        assert!(misfit.contains("no 2 from 2 on"), "{misfit}");
    }

    #[test]
    fn rows_are_added() {
        assert_eq!(changed_floats(3), [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
        assert_eq!(changed_floats(1), [1.0, 2.0, 3.0, 4.0]);
    }

    /// Two rows of two, padded to so many; read in two pieces.
    fn changed_floats(rows: u64) -> Vec<f32> {
        let file: Vec<u8> = (1..5u8).flat_map(|x| f32::from(x).to_le_bytes()).collect();
        let at = Stored { source: Arc::new(file), offset: 0 };
        let tensor = Tensor::stored("t", Shape::new(&[2, 2]).unwrap(), TensorType::F32, at);
        let padded = tensor.changed(Step::Pad { rows }).unwrap();
        let mut out = vec![0; padded.shape.iter().product::<u64>() as usize * 4];
        let (first, second) = out.split_at_mut(12);
        padded.read_at(first, 0).unwrap();
        padded.read_at(second, 12).unwrap();
        out.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
    }
}
