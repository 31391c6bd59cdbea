//! The input of a rule: a header, and the file that holds it.

use crate::raw_header::{RawHeader, Spans};

/// A header under examination, with its place in a file if it was read from one.
pub struct Subject<'d> {
    /// The header.
    pub header: &'d RawHeader,
    /// Byte offsets of its fields; `None` for a header that is not in a file.
    pub spans: Option<&'d Spans>,
    /// Extent of the file; `None` for a header that is not in a file.
    pub file: Option<Extent>,
}

/// The extent of a file.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Byte offset of the data section.
    pub data_start: u64,
    /// File size in bytes.
    pub len: u64,
}

impl<'d> Subject<'d> {
    /// Returns the subject for a header that is not in a file.
    pub fn header_only(header: &'d RawHeader) -> Self {
        Self { header, spans: None, file: None }
    }

    /// Returns the byte offset of metadata entry `i`.
    pub fn entry_at(&self, i: usize) -> Option<u64> {
        self.spans?.entries.get(i).map(|span| span.start)
    }

    /// Returns the byte offset of the value of `key`.
    pub fn value_at(&self, key: &str) -> Option<u64> {
        self.value_of(self.header.metadata.iter().position(|(k, _)| k == key)?)
    }

    /// Returns the byte offset of the value of metadata entry `i`.
    pub fn value_of(&self, i: usize) -> Option<u64> {
        self.spans?.entries.get(i).map(|span| span.value)
    }

    /// Returns the byte offset of the directory entry of tensor `i`.
    pub fn tensor_at(&self, i: usize) -> Option<u64> {
        self.spans?.tensors.get(i).copied()
    }
}
