//! A tensor of the output, as the place where its bytes come from.
//!
//! Nothing is read until the pipeline asks for rows. A tensor may be put together from several
//! stored ones (experts), and its rows may stand in another order than they are stored.

use gguf::{ModelTensor, Shape, Source, TensorType};

/// Where the bytes of a stored tensor begin.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    /// The file.
    pub source: &'a dyn Source,
    /// First byte in the file.
    pub offset: u64,
}

/// How the rows of the output follow from the stored ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// As they are.
    #[default]
    AsStored,
    /// Within each of this many heads, the two halves interleaved: from rotary embedding by
    /// halves, as Hugging Face stores llama's queries and keys, to rotary embedding by pairs.
    InterleaveHalves {
        /// Heads: the rows are divided evenly among them.
        heads: u64,
    },
}

impl RowOrder {
    /// The stored row that becomes row `row` of `rows`.
    fn stored(self, row: u64, rows: u64) -> u64 {
        match self {
            Self::AsStored => row,
            Self::InterleaveHalves { heads } => {
                let per_head = rows / heads;
                let (head, within) = (row / per_head, row % per_head);
                head * per_head + (within % 2) * (per_head / 2) + within / 2
            }
        }
    }
}

/// The content of a tensor.
#[derive(Clone)]
pub enum Content<'a> {
    /// Parts of equal size stored in files, one after the other along the slowest dimension.
    Stored {
        /// The parts, in order.
        parts: Vec<Stored<'a>>,
        /// The order of rows within each part.
        order: RowOrder,
    },
    /// Values computed from the configuration.
    Values(Vec<f32>),
}

/// A tensor of the output.
#[derive(Clone)]
pub struct Tensor<'a> {
    /// Its name in the output.
    pub name: String,
    /// Elements per dimension, fastest first.
    pub shape: Shape,
    /// How the elements are stored in the source.
    pub stored_type: TensorType,
    /// Where they are.
    pub content: Content<'a>,
}

impl<'a> Tensor<'a> {
    /// A tensor stored in one piece, its rows in order.
    pub fn stored(
        name: impl Into<String>,
        shape: Shape,
        stored_type: TensorType,
        at: Stored<'a>,
    ) -> Self {
        let content = Content::Stored { parts: vec![at], order: RowOrder::AsStored };
        Self { name: name.into(), shape, stored_type, content }
    }

    /// A tensor of a model, as it is.
    pub fn of_model(tensor: &ModelTensor<'a>) -> Self {
        let info = &tensor.info;
        let at = Stored { source: tensor.source, offset: tensor.offset };
        Self::stored(&*info.name, info.shape, info.tensor_type, at)
    }

    /// Rows: everything beyond the first dimension.
    pub fn rows(&self) -> u64 {
        self.shape.iter().skip(1).product()
    }

    /// Whether (the beginning of) its data is in this file.
    pub fn is_stored_in(&self, source: &dyn Source) -> bool {
        match &self.content {
            Content::Stored { parts, .. } => {
                parts.first().is_some_and(|part| std::ptr::addr_eq(part.source, source))
            }
            Content::Values(_) => false,
        }
    }

    /// Whether both have the same elements because they come from the same place.
    pub(crate) fn has_source_of(&self, other: &Self) -> bool {
        let same_content = match (&self.content, &other.content) {
            (
                Content::Stored { parts, order },
                Content::Stored { parts: other_parts, order: other_order },
            ) => {
                order == other_order
                    && parts.len() == other_parts.len()
                    && parts
                        .iter()
                        .zip(other_parts)
                        .all(|(a, b)| std::ptr::addr_eq(a.source, b.source) && a.offset == b.offset)
            }
            _ => false,
        };
        same_content && self.shape == other.shape && self.stored_type == other.stored_type
    }

    /// Fills `out` with `n` rows from `first` on, in the stored type.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub(crate) fn read_rows(
        &self,
        first: u64,
        n: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), gguf::Error> {
        let row_len = self.shape.row_len();
        match &self.content {
            Content::Values(values) => {
                let rows = (first * row_len) as usize..((first + n) * row_len) as usize;
                out.clear();
                out.extend(values[rows].iter().flat_map(|v| v.to_le_bytes()));
                Ok(())
            }
            Content::Stored { parts, order: RowOrder::AsStored } => {
                self.read_in_order(parts, first, n, out)
            }
            // The one row of a vector is permuted by elements.
            Content::Stored { parts, order } if self.shape.len() == 1 => {
                self.read_permuted(parts, *order, 1, 0..row_len, out)
            }
            Content::Stored { parts, order } => {
                self.read_permuted(parts, *order, row_len, first..first + n, out)
            }
        }
    }

    /// Reads as few and as long runs as the parts allow.
    fn read_in_order(
        &self,
        parts: &[Stored],
        first: u64,
        n: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), gguf::Error> {
        let row_bytes = self.bytes_of(self.shape.row_len());
        let rows_per_part = self.rows() / parts.len() as u64;
        out.resize((n * row_bytes) as usize, 0);
        let mut rest = out.as_mut_slice();
        let mut row = first;
        while !rest.is_empty() {
            let (part, within) = (row / rows_per_part, row % rows_per_part);
            let run = (rows_per_part - within).min(first + n - row);
            let (buffer, after) = rest.split_at_mut((run * row_bytes) as usize);
            let Stored { source, offset } = parts[part as usize];
            source.read_at(buffer, offset + within * row_bytes)?;
            rest = after;
            row += run;
        }
        Ok(())
    }

    /// Reads units of `unit_len` elements one by one, each from where it is stored.
    fn read_permuted(
        &self,
        parts: &[Stored],
        order: RowOrder,
        unit_len: u64,
        units: std::ops::Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), gguf::Error> {
        let unit_bytes = self.bytes_of(unit_len);
        let total = self.rows() * self.shape.row_len() / unit_len;
        let per_part = total / parts.len() as u64;
        out.resize(((units.end - units.start) * unit_bytes) as usize, 0);
        for (unit, buffer) in units.zip(out.chunks_exact_mut(unit_bytes as usize)) {
            let Stored { source, offset } = parts[(unit / per_part) as usize];
            let within = order.stored(unit % per_part, per_part);
            source.read_at(buffer, offset + within * unit_bytes)?;
        }
        Ok(())
    }

    /// Bytes of `elements` elements, which are a whole number of blocks of a type with a size:
    /// the checkpoint or the container has checked the tensor.
    fn bytes_of(&self, elements: u64) -> u64 {
        self.stored_type.byte_len(&[elements]).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor<'a>(shape: &[u64], files: &'a [Vec<u8>], order: RowOrder) -> Tensor<'a> {
        let parts = files.iter().map(|source| Stored { source, offset: 0 }).collect();
        Tensor {
            name: "t".into(),
            shape: Shape::new(shape).unwrap(),
            stored_type: TensorType::I8,
            content: Content::Stored { parts, order },
        }
    }

    fn rows(tensor: &Tensor, first: u64, n: u64) -> Vec<u8> {
        let mut out = Vec::new();
        tensor.read_rows(first, n, &mut out).unwrap();
        out
    }

    #[test]
    fn parts_follow_one_another() {
        let files = [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10, 11]];
        let tensor = tensor(&[2, 2, 3], &files, RowOrder::AsStored);
        assert_eq!(rows(&tensor, 1, 4), [2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn halves_of_each_head_interleave() {
        let files = [(0..16).collect::<Vec<u8>>()];
        let order = RowOrder::InterleaveHalves { heads: 2 };
        let matrix = tensor(&[2, 8], &files, order);
        assert_eq!(rows(&matrix, 0, 8), [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]);
        assert_eq!(rows(&matrix, 1, 2), [4, 5, 2, 3]);
        let vector = tensor(&[16], &files, order);
        assert_eq!(rows(&vector, 0, 1), [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]);
    }
}
