//! The header as it is read, built and edited, and where its fields stand.

use crate::alignment::Alignment;
use crate::encoding::{ByteOrder, Encoding};
use crate::error::Error;
use crate::metadata::Metadata;
use crate::tensor::TensorInfo;

/// A header that nobody has checked: what a reader found, or what somebody is about to write.
///
/// [`Header::new`](crate::Header::new) turns it into a checked one.
#[derive(Clone, Debug, PartialEq)]
pub struct RawHeader {
    /// Version of the format, 1 to 3.
    pub version: u32,
    /// Order of bytes in numbers, tensor data included.
    pub order: ByteOrder,
    /// Keys and values.
    pub metadata: Metadata,
    /// The tensor directory, in file order.
    pub tensors: Vec<TensorInfo>,
}

impl Default for RawHeader {
    /// Version 3, little-endian, empty.
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
    /// How the numbers of this header are spelled.
    pub(crate) fn encoding(&self) -> Encoding {
        Encoding { order: self.order, counts_32bit: self.version == 1 }
    }

    /// Sets every tensor's offset so that the data follow one another in directory order, each
    /// aligned, and returns the length of the data section without final padding.
    ///
    /// # Errors
    /// [`Error::File`] if a tensor's size cannot be computed or the sum does not fit 64 bits, or
    /// if the alignment is not valid.
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

    /// The alignment that the metadata ask for.
    ///
    /// # Errors
    /// [`Error::File`] if the key is of another type than UINT32 or its value is not valid.
    pub fn alignment(&self) -> Result<Alignment, Error> {
        Alignment::of(&self.metadata).map_err(Error::from)
    }
}

/// Where the fields of a header stand in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Per metadata entry, in order.
    pub entries: Vec<EntrySpan>,
    /// Per tensor, in order: first byte of its directory entry.
    pub tensors: Vec<u64>,
    /// One past the last byte of the directory, before padding.
    pub end: u64,
}

/// Where one metadata entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntrySpan {
    /// First byte: the length of the key.
    pub start: u64,
    /// First byte of the value, after its type.
    pub value: u64,
}
