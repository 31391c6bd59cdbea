//! The header: everything before the tensor data.

use std::collections::HashMap;

use crate::alignment::Alignment;
use crate::encoding::{ByteOrder, Encoding};
use crate::error::Error;
use crate::finding::{Finding, Strict};
use crate::metadata::Metadata;
use crate::raw_header::RawHeader;
use crate::rules::{self, Subject};
use crate::tensor::TensorInfo;

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
        let _ = rules::header_rules(&Subject::unwritten(&draft), &mut sink);
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

    /// Bytes of a file with this header, which itself has `header_bytes`: data and final padding
    /// included.
    ///
    /// # Errors
    /// [`Error::File`] if they do not fit 64 bits.
    pub fn file_len(&self, header_bytes: usize) -> Result<u64, Error> {
        let data_len = self.alignment().align_up(self.data_len());
        data_len
            .and_then(|data| data.checked_add(header_bytes as u64))
            .ok_or_else(|| Finding::error("file-too-long", "the size does not fit 64 bits").into())
    }

    /// The same header as one that can be edited, to be checked again.
    pub fn into_raw(self) -> RawHeader {
        self.draft
    }
}
