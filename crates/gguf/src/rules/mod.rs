//! Rules of the format, one file per group.
//!
//! A rule is a function that examines a [`Subject`] and reports [`Finding`](crate::Finding)s. A full
//! check collects all findings; the strict reader and the writer run the header rules with a sink
//! that stops at the first error, so the three cannot disagree. Rules about models, such as missing
//! tensors, are in the crate `gguf-check`.

mod content;
pub(crate) mod header;
mod keys;
mod kind;
mod layout;
pub(crate) mod shards;
mod subject;
mod tensors;

use std::ops::ControlFlow;

pub use kind::FileKind;
pub use subject::{Extent, Subject};

use crate::finding::Sink;

/// Additional rules, which [`check_header_with`](crate::check_header_with) runs after those of the
/// format.
pub type Rules = fn(&Subject, &mut dyn Sink) -> ControlFlow<()>;

/// Runs the rules that a header must satisfy to be read strictly or written. They are cheap: they
/// read neither arrays nor tensor data.
pub(crate) fn header_rules(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    header::check(subject, sink)?;
    keys::check(subject, sink)?;
    tensors::check(subject, sink)?;
    layout::check(subject, sink)
}

/// Runs all rules of the format that need no tensor data.
pub(crate) fn format_rules(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    header_rules(subject, sink)?;
    content::check(subject, sink)
}
