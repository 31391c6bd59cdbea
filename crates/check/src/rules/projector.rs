//! Rules on mmproj files (architecture `clip`): known tensor names.

use std::ops::ControlFlow;

use gguf::{Finding, Sink, Subject};
use gguf_models::schema::projector;

use crate::rules::grouped_findings::GroupedFindings;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let mut found = GroupedFindings::default();
    for (i, tensor) in subject.header.tensors.iter().enumerate() {
        if !projector::is_known(&tensor.name) {
            found.add(
                Finding::warning("tensor-unexpected", "unknown tensor of an encoder or projector")
                    .tensor(&*tensor.name)
                    .at(subject.tensor_at(i))
                    .help("loaders ignore it, and may miss a tensor with another name"),
            );
        }
    }
    found.report(sink)
}
