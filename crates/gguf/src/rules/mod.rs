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
mod projector;
pub(crate) mod quantization;
pub(crate) mod shards;
pub(crate) mod sidecar;
pub(crate) mod sizes;
pub(crate) mod standard;
mod subject;
pub(crate) mod tensors;
pub(crate) mod tokenizer;

use std::ops::ControlFlow;

pub(crate) use subject::{Extent, Subject};

use crate::finding::Sink;

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
