//! Header: everything before the tensor data.

use std::collections::HashMap;

use crate::alignment::Alignment;
use crate::encoding::{ByteOrder, Encoding};
use crate::error::Error;
use crate::finding::{Finding, Strict};
use crate::metadata::Metadata;
use crate::raw_header::RawHeader;
use crate::rules::{self, Subject};
use crate::tensor::TensorInfo;

/// Valid header: the only kind that can be written, and the only kind that a strict reader returns.
/// [`Gguf::read_damaged`](crate::Gguf::read_damaged) alone returns invalid ones, for display.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    raw: RawHeader,
    alignment: Alignment,
}

impl Header {
    /// Checks a raw header against the rules on header, keys and tensors.
    ///
    /// # Errors
    /// [`Error::File`] with the first violated rule.
    pub fn new(raw: RawHeader) -> Result<Self, Error> {
        let mut sink = Strict::default();
        let _ = rules::header_rules(&Subject::header_only(&raw), &mut sink);
        Self::checked(raw, sink)
    }

    /// Returns the valid header if `sink`, which has received the header rules, has no error.
    pub(crate) fn checked(raw: RawHeader, sink: Strict) -> Result<Self, Error> {
        if let Some(finding) = sink.error {
            return Err(finding.into());
        }
        let alignment = raw.alignment()?;
        Ok(Self { raw, alignment })
    }

    /// Returns a header that breaks rules, for programs that show damaged files.
    pub(crate) fn damaged(raw: RawHeader) -> Self {
        let alignment = raw.alignment().unwrap_or_default();
        Self { raw, alignment }
    }

    /// Returns the raw header.
    pub fn raw(&self) -> &RawHeader {
        &self.raw
    }

    /// Returns the version of the format.
    pub fn version(&self) -> u32 {
        self.raw.version
    }

    /// Returns the byte order.
    pub fn order(&self) -> ByteOrder {
        self.raw.order
    }

    /// Returns the encoding of numbers and lengths.
    pub(crate) fn encoding(&self) -> Encoding {
        self.raw.encoding()
    }

    /// Returns keys and values.
    pub fn metadata(&self) -> &Metadata {
        &self.raw.metadata
    }

    /// Returns the tensor directory, in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.raw.tensors
    }

    /// Returns the tensor with this name by scanning the directory; use [`Header::index`] for many
    /// lookups.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors().iter().find(|tensor| tensor.name == name)
    }

    /// Returns an index of all tensors by name.
    pub fn index(&self) -> HashMap<&str, &TensorInfo> {
        self.tensors().iter().map(|tensor| (&*tensor.name, tensor)).collect()
    }

    /// Returns the alignment of tensor data.
    pub fn alignment(&self) -> Alignment {
        self.alignment
    }

    /// Returns the end of the tensor data, relative to the data section; tensors of unknown size
    /// count as empty.
    pub fn data_len(&self) -> u64 {
        self.tensors()
            .iter()
            .map(|tensor| tensor.offset.saturating_add(tensor.byte_len().unwrap_or(0)))
            .max()
            .unwrap_or(0)
    }

    /// Returns the size of a file with this header, which has `header_bytes` itself, including data
    /// and final padding.
    ///
    /// # Errors
    /// [`Error::File`] on overflow of 64 bits.
    pub fn file_len(&self, header_bytes: usize) -> Result<u64, Error> {
        let data_len = self.alignment().align_up(self.data_len());
        data_len
            .and_then(|data| data.checked_add(header_bytes as u64))
            .ok_or_else(|| Finding::error("file-too-long", "the size does not fit 64 bits").into())
    }

    /// Returns the raw header, to edit it and check it again.
    pub fn into_raw(self) -> RawHeader {
        self.raw
    }
}
