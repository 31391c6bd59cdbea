//! Rules about models, one file per group.

pub(crate) mod architecture;
mod fit;
mod grouped;
pub(crate) mod naming;
mod projector;
mod quantization;
pub(crate) mod sidecar;
mod sizes;
mod standard;
mod tokenizer;

use std::ops::ControlFlow;

use gguf::{Sink, Subject};

/// All rules about models that need no tensor data; they run after those of the format.
pub(crate) fn model_rules(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    standard::check(subject, sink)?;
    architecture::check(subject, sink)?;
    tokenizer::check(subject, sink)?;
    quantization::check(subject, sink)
}
