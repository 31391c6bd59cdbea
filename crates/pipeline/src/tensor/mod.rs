//! Lazy tensors: a name, a shape and the source of the bytes.
//!
//! Nothing is read until the pipeline requests rows. A tensor may consist of several stored tensors
//! (experts) and be transformed by [`Step`]s. Data in foreign formats, such as GPTQ matrices, comes
//! from a [`Source`] that yields plain elements.

mod interleaved;
mod step;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gguf::{Error, Shape, TensorType};
use gguf_store::{ModelTensor, Source};

use crate::mismatch::TensorMismatch;

pub use interleaved::{Interleaved, RowSlice};
pub use step::{Function, Step};

/// Position of a stored tensor.
#[derive(Clone)]
pub struct Stored {
    /// Source file.
    pub source: Arc<dyn Source>,
    /// Byte offset in the file.
    pub offset: u64,
}

/// Content of a tensor.
#[derive(Clone)]
pub enum Content {
    /// Contiguous bytes of a file.
    Stored(Stored),
    /// Bytes of a file in a type of unknown layout, which can only be copied.
    Opaque {
        /// Position.
        at: Stored,
        /// Number of bytes.
        len: u64,
    },
    /// Values computed from the configuration.
    Values(Vec<f32>),
    /// Tensors of one type, concatenated along the slowest dimension.
    Joined(Vec<Tensor>),
    /// Tensors whose rows alternate: see [`Tensor::interleaved`].
    Interleaved(Interleaved),
    /// Another tensor after a step: see [`Tensor::changed`].
    Changed {
        /// Tensor before the step.
        from: Box<Tensor>,
        /// The step.
        step: Step,
    },
}

/// A lazily read tensor.
#[derive(Clone)]
pub struct Tensor {
    /// Name in the output.
    pub name: String,
    /// Elements per dimension, fastest first.
    pub shape: Shape,
    /// Type in the source.
    pub stored_type: TensorType,
    /// Source of the elements.
    pub content: Content,
}

impl Tensor {
    /// Creates a tensor that is stored contiguously, in row-major order.
    pub fn stored(
        name: impl Into<String>,
        shape: Shape,
        stored_type: TensorType,
        at: Stored,
    ) -> Self {
        Self { name: name.into(), shape, stored_type, content: Content::Stored(at) }
    }

    /// Stacks tensors along a new slowest dimension.
    ///
    /// # Errors
    /// Returns an error if they differ in shape or type, or already have four dimensions.
    pub fn joined(name: impl Into<String>, parts: Vec<Self>) -> Result<Self, TensorMismatch> {
        let [first, others @ ..] = &parts[..] else { return Err("has no parts".into()) };
        let like_first =
            |part: &Self| part.shape == first.shape && part.stored_type == first.stored_type;
        if !others.iter().all(like_first) {
            return Err("differs from the other tensors in shape or type".into());
        }
        let dims = [&first.shape, &[parts.len() as u64][..]].concat();
        let shape = Shape::new(&dims)
            .ok_or_else(|| format!("already has {} dimensions", first.shape.len()))?;
        let stored_type = first.stored_type;
        Ok(Self { name: name.into(), shape, stored_type, content: Content::Joined(parts) })
    }

    /// Concatenates tensors along their slowest dimension, in which their sizes may differ.
    ///
    /// # Errors
    /// Returns an error if they differ in other dimensions or in type, or have no dimension.
    pub fn stacked(name: impl Into<String>, parts: Vec<Self>) -> Result<Self, TensorMismatch> {
        let first = parts.first().ok_or("has no parts")?;
        let (_, row) = first.shape.split_last().ok_or("has no dimensions")?;
        let mut rows = 0u64;
        for part in &parts {
            let more = part
                .shape
                .split_last()
                .filter(|(_, part_row)| *part_row == row && part.stored_type == first.stored_type);
            let more = more.ok_or("differs from the other tensors in row shape or type")?;
            rows = rows.checked_add(*more.0).ok_or("has too many rows")?;
        }
        let shape = Shape::new(&[row, &[rows]].concat()).ok_or("has too many dimensions")?;
        let stored_type = first.stored_type;
        Ok(Self { name: name.into(), shape, stored_type, content: Content::Joined(parts) })
    }

    /// Creates a tensor that reads a tensor of a model unchanged.
    pub fn of_model(tensor: &ModelTensor) -> Self {
        let info = &tensor.info;
        let at = Stored { source: tensor.source.clone(), offset: tensor.offset };
        let content = match info.opaque_len.filter(|_| info.tensor_type.block().is_none()) {
            Some(len) => Content::Opaque { at, len },
            None => Content::Stored(at),
        };
        let (shape, stored_type) = (info.shape, info.tensor_type);
        Self { name: info.name.clone(), shape, stored_type, content }
    }

    /// Returns the number of bytes of data in a type of unknown layout.
    pub fn opaque_len(&self) -> Option<u64> {
        match self.content {
            Content::Opaque { len, .. } => Some(len),
            _ => None,
        }
    }

    /// Returns the number of rows for copies and conversions, and the number of elements of a row. Data of unknown
    /// layout have a row for each byte.
    pub(crate) fn copied_rows(&self) -> (u64, u64) {
        match self.opaque_len() {
            Some(len) => (len, 1),
            None => (self.rows(), self.shape.row_len()),
        }
    }

    /// Number of rows: the product of all dimensions except the first.
    pub fn rows(&self) -> u64 {
        self.shape.iter().skip(1).product()
    }

    /// Returns the number of rows for steps that move rows, and the elements per row: in a vector,
    /// each element counts as a row.
    fn units(&self) -> (u64, u64) {
        match self.shape.len() {
            0 | 1 => (self.shape.row_len(), 1),
            _ => (self.rows(), self.shape.row_len()),
        }
    }

    /// Returns the file that contains all data, for messages; `None` if there are several.
    pub fn file(&self) -> Option<&Path> {
        match &self.content {
            Content::Stored(at) | Content::Opaque { at, .. } => at.source.file(),
            Content::Joined(parts) => common_file(parts.iter()),
            Content::Interleaved(interleaved) => common_file(interleaved.tensors()),
            Content::Changed { from, .. } => from.file(),
            Content::Values(_) => None,
        }
    }

    /// Adds the file to an error about the data.
    pub fn at_fault(&self, error: Error) -> Error {
        match self.file() {
            Some(file) => error.in_file(file),
            None => error,
        }
    }

    /// Whether the data, or its beginning, is in this file.
    pub fn is_stored_in(&self, source: &dyn Source) -> bool {
        match &self.content {
            Content::Stored(at) | Content::Opaque { at, .. } => {
                std::ptr::addr_eq(Arc::as_ptr(&at.source), source)
            }
            Content::Joined(parts) => parts.first().is_some_and(|part| part.is_stored_in(source)),
            Content::Interleaved(interleaved) => {
                interleaved.tensors().next().is_some_and(|tensor| tensor.is_stored_in(source))
            }
            Content::Changed { from, .. } => from.is_stored_in(source),
            Content::Values(_) => false,
        }
    }

    /// Whether both tensors have the same source.
    pub(crate) fn has_source_of(&self, other: &Self) -> bool {
        let same_content = match (&self.content, &other.content) {
            (Content::Stored(a), Content::Stored(b))
            | (Content::Opaque { at: a, .. }, Content::Opaque { at: b, .. }) => {
                Arc::ptr_eq(&a.source, &b.source) && a.offset == b.offset
            }
            (Content::Joined(parts), Content::Joined(others)) => {
                parts.len() == others.len()
                    && parts.iter().zip(others).all(|(a, b)| a.has_source_of(b))
            }
            (Content::Interleaved(interleaved), Content::Interleaved(other)) => {
                interleaved.has_source_of(other)
            }
            (
                Content::Changed { from, step },
                Content::Changed { from: other, step: other_step },
            ) => step == other_step && from.has_source_of(other),
            _ => false,
        };
        same_content && self.shape == other.shape && self.stored_type == other.stored_type
    }

    /// Number of rows that cost as much to read as one: transposed rows that come from the same
    /// blocks, which are decoded whole.
    pub fn rows_per_block(&self) -> u64 {
        match &self.content {
            Content::Changed { from, step: Step::Transpose } => from.block_len(),
            Content::Changed { from, .. } => from.rows_per_block(),
            _ => 1,
        }
    }

    /// Number of elements of a row that are decoded together.
    fn block_len(&self) -> u64 {
        match &self.content {
            Content::Changed { from, step: Step::Decode } => {
                from.stored_type.block().map_or(1, |(elements, _)| elements)
            }
            Content::Changed { from, .. } => from.block_len(),
            Content::Interleaved(interleaved) => {
                interleaved.tensors().map(Tensor::block_len).max().unwrap_or(1)
            }
            _ => 1,
        }
    }

    /// Fills `out` with `n` rows starting at `first`, in the stored type.
    ///
    /// # Errors
    /// See [`Source::read_at`].
    pub fn read_rows(&self, first: u64, n: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        let row_bytes = self.bytes_of(self.copied_rows().1);
        out.resize((n * row_bytes) as usize, 0);
        self.read_at(out, first * row_bytes)
    }

    /// Decodes `n` rows starting at `first`.
    ///
    /// # Errors
    /// Returns the errors of [`Tensor::read_rows`], or an error if the rows cannot be decoded.
    pub fn decode_rows(&self, first: u64, n: u64) -> Result<Vec<f32>, Error> {
        let mut stored = Vec::new();
        self.read_rows(first, n, &mut stored)?;
        let mut values = vec![0.0; (n * self.shape.row_len()) as usize];
        gguf_quant::decode_row(self.stored_type, &stored, &mut values)
            .map_err(|fault| Error::weights(&self.name, fault.to_string()))?;
        Ok(values)
    }

    /// Fills `buffer` with the bytes starting at `offset`, in the stored type.
    ///
    /// # Errors
    /// See [`Source::read_at`].
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        match &self.content {
            Content::Stored(at) | Content::Opaque { at, .. } => {
                at.source.read_at(buffer, at.offset + offset)
            }
            Content::Joined(parts) => read_parts(parts, buffer, offset),
            Content::Interleaved(interleaved) => interleaved.read_at(buffer, offset),
            Content::Values(values) => {
                // Elements are read whole.
                let first = offset as usize / size_of::<f32>();
                for (out, value) in buffer.chunks_exact_mut(size_of::<f32>()).zip(&values[first..])
                {
                    out.copy_from_slice(&value.to_le_bytes());
                }
                Ok(())
            }
            Content::Changed { from, step } => step.read_at(from, self, buffer, offset),
        }
    }

    /// Fills `out` with the elements of `columns` in `n` rows starting at `first`.
    pub(crate) fn read_columns(
        &self,
        columns: Range<u64>,
        first: u64,
        n: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let width = self.bytes_of(columns.end - columns.start) as usize;
        let (start, row_bytes) =
            (self.bytes_of(columns.start), self.bytes_of(self.shape.row_len()));
        out.resize(n as usize * width, 0);
        (first..first + n)
            .zip(out.chunks_exact_mut(width))
            .try_for_each(|(row, buffer)| self.read_at(buffer, row * row_bytes + start))
    }

    /// Number of bytes of `elements` elements, a whole number of blocks: the checkpoint or the
    /// container has checked the tensor.
    pub fn bytes_of(&self, elements: u64) -> u64 {
        match self.opaque_len() {
            Some(_) => elements,
            None => self.stored_type.byte_len(&[elements]).unwrap_or(0),
        }
    }
}

/// Reads from consecutive parts in runs as long as possible.
fn read_parts(parts: &[Tensor], mut buffer: &mut [u8], mut offset: u64) -> Result<(), Error> {
    for part in parts {
        let bytes = part.bytes_of(part.shape.iter().product());
        if offset >= bytes {
            offset -= bytes;
            continue;
        }
        let len = (bytes - offset).min(buffer.len() as u64);
        let (run, rest) = buffer.split_at_mut(len as usize);
        part.read_at(run, offset)?;
        if rest.is_empty() {
            break;
        }
        (buffer, offset) = (rest, 0);
    }
    Ok(())
}

/// Returns the file of the tensors if it is the same for all.
fn common_file<'t>(mut tensors: impl Iterator<Item = &'t Tensor>) -> Option<&'t Path> {
    let file = tensors.next()?.file()?;
    tensors.all(|tensor| tensor.file() == Some(file)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_concatenated() {
        let files = [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10, 11]];
        let part = |file: Vec<u8>| {
            let at = Stored { source: Arc::new(file), offset: 0 };
            Tensor::stored("t", Shape::new(&[2, 2]).unwrap(), TensorType::I8, at)
        };
        let tensor = Tensor {
            name: "t".into(),
            shape: Shape::new(&[2, 2, 3]).unwrap(),
            stored_type: TensorType::I8,
            content: Content::Joined(files.into_iter().map(part).collect()),
        };
        let mut out = Vec::new();
        tensor.read_rows(1, 4, &mut out).unwrap();
        assert_eq!(out, [2, 3, 4, 5, 6, 7, 8, 9]);
        tensor.read_columns(1..2, 1, 3, &mut out).unwrap();
        assert_eq!(out, [3, 5, 7]);
    }

    #[test]
    fn parts_of_different_lengths_are_stacked() {
        let part = |shape: &[u64], first: u8| {
            let bytes: Vec<u8> = (first..).take(shape.iter().product::<u64>() as usize).collect();
            let at = Stored { source: Arc::new(bytes), offset: 0 };
            Tensor::stored("t", Shape::new(shape).unwrap(), TensorType::I8, at)
        };
        let parts = vec![part(&[2, 2], 0), part(&[2, 1], 4), part(&[2, 3], 6)];
        let tensor = Tensor::stacked("all", parts.clone()).unwrap();
        assert_eq!(&tensor.shape[..], [2, 6]);
        let mut out = Vec::new();
        for first in 0..6 {
            for n in 1..=6 - first {
                tensor.read_rows(first, n, &mut out).unwrap();
                assert_eq!(out, (2 * first as u8..2 * (first + n) as u8).collect::<Vec<_>>());
            }
        }
        let other = Tensor::stacked("all", vec![parts[0].clone(), part(&[3, 2], 4)]);
        assert!(other.err().unwrap().to_string().contains("in row shape"));
    }
}
