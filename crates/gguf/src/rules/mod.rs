//! The rules of the format, one file per group.
//!
//! Each rule is a function that looks at a [`Subject`] and reports what it finds. A full check
//! runs all groups with a sink that keeps everything; a strict reader and the writer run the
//! header rules with a sink that stops at the first error. So they cannot disagree.

pub(crate) mod architecture;
pub(crate) mod content;
pub(crate) mod fit;
pub(crate) mod grouped;
pub(crate) mod header;
pub(crate) mod keys;
pub(crate) mod kind;
pub(crate) mod layout;
pub(crate) mod naming;
pub(crate) mod quantization;
pub(crate) mod shards;
pub(crate) mod sizes;
pub(crate) mod standard;
pub(crate) mod tensors;
pub(crate) mod tokenizer;

use std::ops::ControlFlow;

use crate::finding::Sink;
use crate::header::{RawHeader, Spans};

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
    fn entry_at(&self, i: usize) -> Option<u64> {
        self.spans?.entries.get(i).map(|span| span.start)
    }

    /// Where the value of the entry with this key stands.
    fn value_at(&self, key: &str) -> Option<u64> {
        self.value_of(self.draft.metadata.iter().position(|(k, _)| k == key)?)
    }

    /// Where the value of entry `i` of the metadata stands.
    fn value_of(&self, i: usize) -> Option<u64> {
        self.spans?.entries.get(i).map(|span| span.value)
    }

    /// Where the directory entry of tensor `i` stands.
    fn tensor_at(&self, i: usize) -> Option<u64> {
        self.spans?.tensors.get(i).copied()
    }
}

/// The rules that a header must keep to be read strictly or written: cheap, nothing in arrays or
/// tensor data is looked at.
pub(crate) fn header_rules(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    header::check(subject, sink)?;
    keys::check(subject, sink)?;
    tensors::check(subject, sink)?;
    layout::check(subject, sink)
}

/// All rules that need no tensor data.
pub(crate) fn all(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    header_rules(subject, sink)?;
    content::check(subject, sink)?;
    standard::check(subject, sink)?;
    architecture::check(subject, sink)?;
    tokenizer::check(subject, sink)?;
    quantization::check(subject, sink)
}
