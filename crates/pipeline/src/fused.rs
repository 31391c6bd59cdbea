//! Rows of several tensors in turn: what undoes [`Step::Pick`](crate::Step::Pick).

use gguf::Shape;

use crate::misfit::Misfit;
use crate::tensor::{Content, Tensor};

/// Tensors that were picked out of the groups of rows of one, put together again.
///
/// In a vector an element counts as a row.
#[derive(Clone)]
pub struct Fused {
    /// Rows of a group.
    group: u64,
    /// In the order of their rows in a group.
    strands: Vec<Strand>,
}

/// A tensor whose rows go to the same place of every group.
#[derive(Clone)]
pub struct Strand {
    /// The first of its rows in each group.
    pub start: u64,
    /// How many rows it has in each group.
    pub len: u64,
    /// All its rows.
    pub tensor: Tensor,
}

impl Tensor {
    /// The tensor whose rows are `groups` groups, of which each strand has its rows.
    ///
    /// Rows of a group that no strand has are zeros, up to the last that one has.
    ///
    /// # Errors
    /// If the strands do not fit one another.
    pub fn fused(
        name: impl Into<String>,
        groups: u64,
        mut strands: Vec<Strand>,
    ) -> Result<Self, Misfit> {
        strands.sort_by_key(|strand| strand.start);
        let Some(Strand { tensor: first, .. }) = strands.first() else {
            return Err("has no parts".into());
        };
        let (shape, stored_type) = (first.shape, first.stored_type);
        // The dimension that rows are counted along, and for a vector its elements are.
        let counted = usize::from(shape.len() > 1);
        let others = |shape: &Shape| {
            let dims = shape.iter().enumerate();
            dims.filter(|(i, _)| *i != counted).map(|(_, dim)| *dim).collect::<Vec<_>>()
        };
        let mut group = 0;
        for Strand { start, len, tensor } in &strands {
            if tensor.stored_type != stored_type || others(&tensor.shape) != others(&shape) {
                return Err("differs from its sisters in shape or type".into());
            }
            if tensor.units().0 != groups.saturating_mul(*len) {
                let rows = tensor.units().0;
                return Err(format!("has {rows} rows, which are not {groups} times {len}").into());
            }
            if *start < group {
                return Err("has rows that a sister has too".into());
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
        let content = Content::Fused(Fused { group, strands });
        Ok(Self { name: name.into(), shape, stored_type, content })
    }
}

impl Fused {
    /// Fills `buffer` with the bytes from `offset` on, in as long runs as the strands make.
    pub fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<(), gguf::Error> {
        let Some(Strand { tensor: first, .. }) = self.strands.first() else { return Ok(()) };
        let row_bytes = first.bytes_of(first.units().1);
        while !buffer.is_empty() {
            let (row, within) = (offset / row_bytes, offset % row_bytes);
            let (group, row) = (row / self.group, row % self.group);
            let next = self.strands.partition_point(|strand| strand.start <= row);
            let strand = next.checked_sub(1).map(|last| &self.strands[last]);
            let strand = strand.filter(|strand| row - strand.start < strand.len);
            let end = match strand {
                Some(strand) => strand.start + strand.len,
                None => self.strands.get(next).map_or(self.group, |strand| strand.start),
            };
            let len = ((end - row) * row_bytes - within).min(buffer.len() as u64);
            let (run, rest) = buffer.split_at_mut(len as usize);
            match strand {
                Some(Strand { start, len, tensor }) => {
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

    /// The tensors that are put together.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.strands.iter().map(|strand| &strand.tensor)
    }

    /// Whether both put the same rows together in the same way.
    pub(crate) fn has_source_of(&self, other: &Self) -> bool {
        let same = |(a, b): (&Strand, &Strand)| {
            a.start == b.start && a.len == b.len && a.tensor.has_source_of(&b.tensor)
        };
        self.group == other.group
            && self.strands.len() == other.strands.len()
            && self.strands.iter().zip(&other.strands).all(same)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gguf::TensorType;

    use super::*;
    use crate::step::Step;
    use crate::tensor::Stored;

    fn tensor(shape: &[u64], file: &[u8]) -> Tensor {
        let at = Stored { source: Arc::new(file.to_vec()), offset: 0 };
        Tensor::stored("t", Shape::new(shape).unwrap(), TensorType::I8, at)
    }

    /// What is picked of a tensor, in each of these pieces of a group, put together again: shape,
    /// and elements however the reading is cut up.
    fn there_and_back(
        shape: &[u64],
        groups: u64,
        pieces: &[(u64, u64)],
    ) -> Result<(Vec<u64>, Vec<u8>), Misfit> {
        let file: Vec<u8> = (1..=shape.iter().product::<u64>() as u8).collect();
        let strands = pieces.iter().map(|&(start, len)| {
            let tensor = tensor(shape, &file).changed(Step::Pick { groups, start, len })?;
            Ok(Strand { start, len, tensor })
        });
        let fused = Tensor::fused("t", groups, strands.collect::<Result<_, Misfit>>()?)?;
        let mut whole = vec![9; fused.shape.iter().product::<u64>() as usize];
        fused.read_at(&mut whole, 0).unwrap();
        for piece in 1..whole.len() {
            let mut pieces = vec![9; whole.len()];
            for (i, buffer) in pieces.chunks_mut(piece).enumerate() {
                fused.read_at(buffer, (i * piece) as u64).unwrap();
            }
            assert_eq!(pieces, whole, "in pieces of {piece}");
        }
        Ok((fused.shape.to_vec(), whole))
    }

    #[test]
    fn picked_rows_find_their_place() {
        let all = |len| (1..=len).collect::<Vec<u8>>();
        let kinds = [(0, 2), (3, 1), (2, 1)];
        assert_eq!(there_and_back(&[8], 2, &kinds), Ok((vec![8], all(8))));
        assert_eq!(there_and_back(&[2, 8], 2, &kinds), Ok((vec![2, 8], all(16))));
        assert_eq!(there_and_back(&[3, 8, 2], 4, &kinds), Ok((vec![3, 8, 2], all(48))));
        assert_eq!(there_and_back(&[1, 4, 2], 4, &[(0, 1), (1, 1)]), Ok((vec![1, 4, 2], all(8))));
    }

    #[test]
    fn rows_of_nobody_are_zeros() {
        let positions = there_and_back(&[2, 4], 1, &[(2, 2)]);
        assert_eq!(positions, Ok((vec![2, 4], vec![0, 0, 0, 0, 5, 6, 7, 8])));
        let between = there_and_back(&[8], 2, &[(0, 1), (2, 1)]);
        assert_eq!(between, Ok((vec![6], vec![1, 0, 3, 5, 0, 7])));
    }

    #[test]
    fn strands_must_fit() {
        assert!(
            there_and_back(&[8], 2, &[(0, 2), (1, 2)])
                .unwrap_err()
                .to_string()
                .contains("sister has too")
        );
        let file: Vec<u8> = (0..8).collect();
        let strand =
            |shape: &[u64], start, len| Strand { start, len, tensor: tensor(shape, &file) };
        let fused = |strands| Tensor::fused("t", 2, strands).err().unwrap().to_string();
        assert!(fused(vec![]).contains("no parts"));
        assert!(fused(vec![strand(&[2, 4], 0, 3)]).contains("not 2 times 3"));
        let differing = fused(vec![strand(&[2, 4], 0, 2), strand(&[1, 4], 2, 2)]);
        assert!(differing.contains("shape or type"));
    }
}
