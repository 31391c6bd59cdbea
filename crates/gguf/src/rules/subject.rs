//! A header, and the file that it is of, as rules look at it.

use crate::raw_header::{RawHeader, Spans};

/// What the rules look at.
pub(crate) struct Subject<'d> {
    /// The header.
    pub draft: &'d RawHeader,
    /// Where its fields stand, if it was read from a file.
    pub spans: Option<&'d Spans>,
    /// Where the data section begins and how long the file is, if there is a file.
    pub file: Option<Extent>,
}

/// The extent of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// First byte of the data section.
    pub data_start: u64,
    /// Bytes of the whole file.
    pub len: u64,
}

impl<'d> Subject<'d> {
    /// A header that is not in a file yet.
    pub fn unwritten(draft: &'d RawHeader) -> Self {
        Self { draft, spans: None, file: None }
    }

    /// Where entry `i` of the metadata stands.
    pub(super) fn entry_at(&self, i: usize) -> Option<u64> {
        self.spans?.entries.get(i).map(|span| span.start)
    }

    /// Where the value of the entry with this key stands.
    pub(super) fn value_at(&self, key: &str) -> Option<u64> {
        self.value_of(self.draft.metadata.iter().position(|(k, _)| k == key)?)
    }

    /// Where the value of entry `i` of the metadata stands.
    pub(super) fn value_of(&self, i: usize) -> Option<u64> {
        self.spans?.entries.get(i).map(|span| span.value)
    }

    /// Where the directory entry of tensor `i` stands.
    pub(super) fn tensor_at(&self, i: usize) -> Option<u64> {
        self.spans?.tensors.get(i).copied()
    }
}
