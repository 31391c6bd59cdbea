//! Tensors whose rows alternate: the inverse of [`Step::Pick`](crate::Step::Pick).

use gguf::Shape;

use super::{Content, Tensor};
use crate::mismatch::TensorMismatch;

/// Tensors that hold slices of the row groups of one tensor, reassembled.
///
/// In a vector, each element counts as a row.
#[derive(Clone)]
pub struct Interleaved {
    /// Number of rows per group.
    group: u64,
    /// Slices in the order of their rows within a group.
    slices: Vec<RowSlice>,
}

/// A tensor whose rows fill the same position of every group.
#[derive(Clone)]
pub struct RowSlice {
    /// First row of the slice within each group.
    pub start: u64,
    /// Number of rows of the slice within each group.
    pub len: u64,
    /// Tensor with all rows of the slice.
    pub tensor: Tensor,
}

impl Tensor {
    /// Reassembles a tensor of `groups` row groups from its slices.
    ///
    /// Rows that no slice covers are zero, up to the last covered row of a group.
    ///
    /// # Errors
    /// Returns an error if the slices do not match each other.
    pub fn interleaved(
        name: impl Into<String>,
        groups: u64,
        mut slices: Vec<RowSlice>,
    ) -> Result<Self, TensorMismatch> {
        slices.sort_by_key(|slice| slice.start);
        let Some(RowSlice { tensor: first, .. }) = slices.first() else {
            return Err("has no parts".into());
        };
        let (shape, stored_type) = (first.shape, first.stored_type);
        // The dimension of the rows; for a vector, its elements.
        let counted = usize::from(shape.len() > 1);
        let others = |shape: &Shape| {
            let dims = shape.iter().enumerate();
            dims.filter(|(i, _)| *i != counted).map(|(_, dim)| *dim).collect::<Vec<_>>()
        };
        let mut group = 0;
        for RowSlice { start, len, tensor } in &slices {
            if tensor.stored_type != stored_type || others(&tensor.shape) != others(&shape) {
                return Err("differs from the other tensors in shape or type".into());
            }
            if tensor.units().0 != groups.saturating_mul(*len) {
                let rows = tensor.units().0;
                return Err(format!("has {rows} rows; expected {groups} times {len}").into());
            }
            if *start < group {
                return Err("overlaps the rows of another tensor".into());
            }
            group = start.saturating_add(*len);
        }
        if counted == 0 && stored_type.is_quantized() {
            return Err(format!("is stored as {stored_type}, in blocks").into());
        }
        let matrices: u64 = shape.iter().skip(2).product();
        let mut dims = shape.to_vec();
        let rows = groups.checked_div(matrices).and_then(|groups| groups.checked_mul(group));
        let (Some(dim), Some(rows)) = (dims.get_mut(counted), rows) else {
            return Err("has no rows".into());
        };
        *dim = rows;
        let shape = Shape::new(&dims).filter(|shape| shape.elements().is_some());
        let shape = shape.ok_or("has too many rows")?;
        let content = Content::Interleaved(Interleaved { group, slices });
        Ok(Self { name: name.into(), shape, stored_type, content })
    }
}

impl Interleaved {
    /// Fills `buffer` with the bytes starting at `offset`, in runs as long as the slices allow.
    pub(crate) fn read_at(
        &self,
        mut buffer: &mut [u8],
        mut offset: u64,
    ) -> Result<(), gguf::Error> {
        let Some(RowSlice { tensor: first, .. }) = self.slices.first() else { return Ok(()) };
        let row_bytes = first.bytes_of(first.units().1);
        while !buffer.is_empty() {
            let (row, within) = (offset / row_bytes, offset % row_bytes);
            let (group, row) = (row / self.group, row % self.group);
            let next = self.slices.partition_point(|slice| slice.start <= row);
            let slice = next.checked_sub(1).map(|last| &self.slices[last]);
            let slice = slice.filter(|slice| row - slice.start < slice.len);
            let end = match slice {
                Some(slice) => slice.start + slice.len,
                None => self.slices.get(next).map_or(self.group, |slice| slice.start),
            };
            let len = ((end - row) * row_bytes - within).min(buffer.len() as u64);
            let (run, rest) = buffer.split_at_mut(len as usize);
            match slice {
                Some(RowSlice { start, len, tensor }) => {
                    let row = group * len + row - start;
                    tensor.read_at(run, row * row_bytes + within)?;
                }
                None => run.fill(0),
            }
            buffer = rest;
            offset += len;
        }
        Ok(())
    }

    /// Returns the tensors of the slices.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.slices.iter().map(|slice| &slice.tensor)
    }

    /// Whether both reassemble the same sources in the same way.
    pub(crate) fn has_source_of(&self, other: &Self) -> bool {
        let same = |(a, b): (&RowSlice, &RowSlice)| {
            a.start == b.start && a.len == b.len && a.tensor.has_source_of(&b.tensor)
        };
        self.group == other.group
            && self.slices.len() == other.slices.len()
            && self.slices.iter().zip(&other.slices).all(same)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gguf::TensorType;

    use super::super::{Step, Stored};
    use super::*;

    fn tensor(shape: &[u64], file: &[u8]) -> Tensor {
        let at = Stored { source: Arc::new(file.to_vec()), offset: 0 };
        Tensor::stored("t", Shape::new(shape).unwrap(), TensorType::I8, at)
    }

    /// Selects the given slices of a group and reassembles them. Returns the shape and the
    /// elements, which must not depend on how the reads are split.
    fn round_trip(
        shape: &[u64],
        groups: u64,
        pieces: &[(u64, u64)],
    ) -> Result<(Vec<u64>, Vec<u8>), TensorMismatch> {
        let file: Vec<u8> = (1..=shape.iter().product::<u64>() as u8).collect();
        let slices = pieces.iter().map(|&(start, len)| {
            let tensor = tensor(shape, &file).changed(Step::Pick { groups, start, len })?;
            Ok(RowSlice { start, len, tensor })
        });
        let interleaved =
            Tensor::interleaved("t", groups, slices.collect::<Result<_, TensorMismatch>>()?)?;
        let mut whole = vec![9; interleaved.shape.iter().product::<u64>() as usize];
        interleaved.read_at(&mut whole, 0).unwrap();
        for piece in 1..whole.len() {
            let mut pieces = vec![9; whole.len()];
            for (i, buffer) in pieces.chunks_mut(piece).enumerate() {
                interleaved.read_at(buffer, (i * piece) as u64).unwrap();
            }
            assert_eq!(pieces, whole, "in pieces of {piece}");
        }
        Ok((interleaved.shape.to_vec(), whole))
    }

    #[test]
    fn picked_rows_are_reassembled() {
        let all = |len| (1..=len).collect::<Vec<u8>>();
        let kinds = [(0, 2), (3, 1), (2, 1)];
        assert_eq!(round_trip(&[8], 2, &kinds), Ok((vec![8], all(8))));
        assert_eq!(round_trip(&[2, 8], 2, &kinds), Ok((vec![2, 8], all(16))));
        assert_eq!(round_trip(&[3, 8, 2], 4, &kinds), Ok((vec![3, 8, 2], all(48))));
        assert_eq!(round_trip(&[1, 4, 2], 4, &[(0, 1), (1, 1)]), Ok((vec![1, 4, 2], all(8))));
    }

    #[test]
    fn uncovered_rows_are_zero() {
        let positions = round_trip(&[2, 4], 1, &[(2, 2)]);
        assert_eq!(positions, Ok((vec![2, 4], vec![0, 0, 0, 0, 5, 6, 7, 8])));
        let between = round_trip(&[8], 2, &[(0, 1), (2, 1)]);
        assert_eq!(between, Ok((vec![6], vec![1, 0, 3, 5, 0, 7])));
    }

    #[test]
    fn slices_must_match() {
        assert!(
            round_trip(&[8], 2, &[(0, 2), (1, 2)])
                .unwrap_err()
                .to_string()
                .contains("overlaps the rows of another tensor")
        );
        let file: Vec<u8> = (0..8).collect();
        let slice =
            |shape: &[u64], start, len| RowSlice { start, len, tensor: tensor(shape, &file) };
        let interleaved = |slices| Tensor::interleaved("t", 2, slices).err().unwrap().to_string();
        assert!(interleaved(vec![]).contains("no parts"));
        assert!(interleaved(vec![slice(&[2, 4], 0, 3)]).contains("has 4 rows; expected 2 times 3"));
        let differing = interleaved(vec![slice(&[2, 4], 0, 2), slice(&[1, 4], 2, 2)]);
        assert!(differing.contains("shape or type"));
    }
}
