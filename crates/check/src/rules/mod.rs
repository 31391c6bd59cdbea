//! Rules about models, one file per subject.

pub(crate) mod architecture;
mod detect;
pub(crate) mod file_name;
mod file_type;
mod grouped_findings;
mod hyper_parameters;
mod keys;
mod projector;
mod rope;
pub(crate) mod shapes;
pub(crate) mod sidecar;
pub(crate) mod tokenizer;

use std::ops::ControlFlow;

use gguf::{Sink, Subject};

/// Runs all rules about models that need no tensor data, after those of the format.
pub(crate) fn model_rules(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    keys::check(subject, sink)?;
    architecture::check(subject, sink)?;
    tokenizer::check(subject, sink)?;
    rope::check(subject, sink)?;
    shapes::check(subject, sink)?;
    file_type::check(subject, sink)
}
