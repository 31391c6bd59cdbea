//! The header: everything before the tensor data.

use std::collections::HashMap;

use crate::alignment::{self, Alignment};
use crate::encoding::{ByteOrder, Encoding};
use crate::error::Error;
use crate::finding::{Finding, Strict};
use crate::metadata::Metadata;
use crate::rules;
use crate::tensor::TensorInfo;

/// A header that nobody has checked: what a reader found, or what somebody is about to write.
///
/// [`Header::new`] turns it into a checked one.
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
            end = placed.ok_or_else(|| Error::from(rules::tensors::no_size(tensor)))?;
        }
        Ok(end)
    }

    /// The alignment that the metadata ask for.
    ///
    /// # Errors
    /// [`Error::File`] if the key is of another type than UINT32 or its value is not valid.
    pub fn alignment(&self) -> Result<Alignment, Error> {
        rules::header::alignment(&self.metadata).map_err(Error::from)
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

/// A header that keeps the rules of the format: the only kind that can be written, and the only
/// kind a strict reader gives out.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    draft: RawHeader,
    alignment: Alignment,
}

impl Header {
    /// Checks a draft against the rules on header, keys and tensors.
    ///
    /// # Errors
    /// [`Error::File`] with the first rule that is broken.
    pub fn new(draft: RawHeader) -> Result<Self, Error> {
        let mut sink = Strict::default();
        let _ = rules::header_rules(&rules::Subject::unwritten(&draft), &mut sink);
        Self::checked(draft, sink)
    }

    /// The proof step, shared with the reader: `sink` has seen the header rules on `draft`.
    pub(crate) fn checked(draft: RawHeader, sink: Strict) -> Result<Self, Error> {
        if let Some(finding) = sink.error {
            return Err(finding.into());
        }
        let alignment = draft.alignment()?;
        Ok(Self { draft, alignment })
    }

    /// The same header as one that can be edited, without the proof.
    pub fn raw(&self) -> &RawHeader {
        &self.draft
    }

    /// Version of the format.
    pub fn version(&self) -> u32 {
        self.draft.version
    }

    /// Order of bytes.
    pub fn order(&self) -> ByteOrder {
        self.draft.order
    }

    /// How its numbers are spelled.
    pub(crate) fn encoding(&self) -> Encoding {
        self.draft.encoding()
    }

    /// Keys and values.
    pub fn metadata(&self) -> &Metadata {
        &self.draft.metadata
    }

    /// The tensor directory, in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.draft.tensors
    }

    /// The tensor with this name, found by scanning the directory; use [`Header::index`] for
    /// many look-ups.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors().iter().find(|tensor| tensor.name == name)
    }

    /// All tensors by name.
    pub fn index(&self) -> HashMap<&str, &TensorInfo> {
        self.tensors().iter().map(|tensor| (&*tensor.name, tensor)).collect()
    }

    /// The alignment of tensor data.
    pub fn alignment(&self) -> Alignment {
        self.alignment
    }

    /// One past the last byte of tensor data, counted from the start of the data section;
    /// tensors without a known size count as empty.
    pub fn data_len(&self) -> u64 {
        self.tensors()
            .iter()
            .map(|tensor| tensor.offset.saturating_add(tensor.byte_len().unwrap_or(0)))
            .max()
            .unwrap_or(0)
    }

    /// The draft, to edit and check again.
    pub fn into_raw(self) -> RawHeader {
        self.draft
    }
}

/// A finding about the alignment key, for both halves.
pub(crate) fn alignment_finding(message: String) -> Finding {
    Finding::error("alignment-invalid", message)
        .key(alignment::KEY)
        .help("the alignment is a UINT32 holding a power of two; 32 is usual")
}
