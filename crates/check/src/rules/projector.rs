//! Rules on files of the architecture `clip`, which go with a model: that somebody has a place for their
//! tensors.

use std::ops::ControlFlow;

use gguf::{Finding, Sink, Subject};
use gguf_models::schema::projector;

use crate::rules::grouped::Grouped;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let mut found = Grouped::default();
    for (i, tensor) in subject.draft.tensors.iter().enumerate() {
        if !projector::is_known(&tensor.name) {
            found.add(
                Finding::warning("tensor-unexpected", "unknown tensor of an encoder or projector")
                    .tensor(&*tensor.name)
                    .at(subject.tensor_at(i))
                    .help("loaders ignore it, and may miss one of another name"),
            );
        }
    }
    found.report(sink)
}
