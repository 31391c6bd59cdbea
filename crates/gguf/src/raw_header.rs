//! Unchecked header, and the byte offsets of its fields.

use crate::alignment::Alignment;
use crate::encoding::{ByteOrder, Encoding};
use crate::error::Error;
use crate::metadata::Metadata;
use crate::tensor::TensorInfo;

/// Unchecked header, as parsed or before it is written.
///
/// [`Header::new`](crate::Header::new) checks it.
#[derive(Clone, Debug, PartialEq)]
pub struct RawHeader {
    /// Version of the format, 1 to 3.
    pub version: u32,
    /// Byte order of numbers, including tensor data.
    pub order: ByteOrder,
    /// Keys and values.
    pub metadata: Metadata,
    /// The tensor directory, in file order.
    pub tensors: Vec<TensorInfo>,
}

impl Default for RawHeader {
    /// Returns an empty header of version 3, little-endian.
    fn default() -> Self {
        Self {
            version: 3,
            order: ByteOrder::Little,
            metadata: Metadata::new(),
            tensors: Vec::new(),
        }
    }
}

impl RawHeader {
    /// Returns the encoding of numbers and lengths.
    pub(crate) fn encoding(&self) -> Encoding {
        Encoding { order: self.order, counts_32bit: self.version == 1 }
    }

    /// Sets the offsets of all tensors so that their data are contiguous in directory order, each
    /// aligned, and returns the length of the data section without final padding.
    ///
    /// # Errors
    /// [`Error::File`] if the size of a tensor cannot be computed, the sum overflows 64 bits, or
    /// the alignment is not valid.
    pub fn lay_out(&mut self) -> Result<u64, Error> {
        let alignment = self.alignment()?;
        let mut end = 0u64;
        for tensor in &mut self.tensors {
            let placed = alignment.align_up(end).and_then(|offset| {
                tensor.offset = offset;
                offset.checked_add(tensor.byte_len()?)
            });
            end = placed.ok_or_else(|| Error::from(tensor.size_fault()))?;
        }
        Ok(end)
    }

    /// Returns the alignment in the metadata, or the default.
    ///
    /// # Errors
    /// [`Error::File`] if the type of the key is not UINT32 or its value is not valid.
    pub fn alignment(&self) -> Result<Alignment, Error> {
        Alignment::of(&self.metadata).map_err(Error::from)
    }
}

/// Byte offsets of the fields of a header in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Offsets of each metadata entry, in order.
    pub entries: Vec<EntrySpan>,
    /// Offset of the directory entry of each tensor, in order.
    pub tensors: Vec<u64>,
    /// End of the directory, before padding.
    pub end: u64,
}

/// Byte offsets of one metadata entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntrySpan {
    /// Offset of the entry, which starts with the length of the key.
    pub start: u64,
    /// Offset of the value, after its type.
    pub value: u64,
}
