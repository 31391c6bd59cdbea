//! Rules on each entry of the tensor directory: name, shape, type, size.

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::finding::{Finding, Sink};
use crate::rules::subject::Subject;
use crate::tensor::TensorInfo;
use crate::tensor_type::Status;

/// Maximum length of a tensor name that every reader accepts. The specification allows 64 bytes;
/// llama.cpp stores names with a final NUL in 64.
const MAX_NAME: usize = 63;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let mut seen = HashSet::new();
    for (i, tensor) in subject.header.tensors.iter().enumerate() {
        let mut report =
            |finding: Finding| sink.report(finding.tensor(&*tensor.name).at(subject.tensor_at(i)));
        if !seen.insert(&*tensor.name) {
            report(
                Finding::error("tensor-duplicate", "the tensor occurs twice in the directory")
                    .help("rename or remove one: loaders disagree on which one counts"),
            )?;
        }
        if tensor.name.is_empty() {
            report(Finding::warning("tensor-name-empty", "a tensor has no name"))?;
        }
        if tensor.name.len() > MAX_NAME {
            let message = format!(
                "the name has {} bytes, most loaders accept at most {MAX_NAME}",
                tensor.name.len()
            );
            report(Finding::warning("tensor-name-long", message))?;
        }
        if let Some(finding) = size(tensor) {
            report(finding)?;
        }
    }
    ControlFlow::Continue(())
}

/// Checks type, shape and size of a tensor.
fn size(tensor: &TensorInfo) -> Option<Finding> {
    let Some(row) = tensor.tensor_type.traits() else {
        let message = format!("{} is not a known tensor type", tensor.tensor_type);
        return Some(
            Finding::warning("tensor-type-unknown", message)
                .help("the file can be listed and edited, but this tensor cannot be decoded"),
        );
    };
    if row.status == Status::Removed {
        let message = format!("{} was removed from GGML", row.name);
        return Some(
            Finding::warning("tensor-type-removed", message)
                .help("convert the model again from its source"),
        );
    }
    if tensor.byte_len().is_none() {
        return Some(tensor.size_fault());
    }
    tensor.shape.contains(&0).then(|| {
        Finding::warning("tensor-empty", format!("the shape {} holds no element", tensor.shape))
    })
}
