//! Rule on `general.file_type`: agreement with the tensor types.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use gguf::{FileKind, Finding, Sink, Subject, TensorInfo, TensorType};

const KEY: &str = "general.file_type";

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let Some(id) = subject.header.metadata.u64(KEY) else { return ControlFlow::Continue(()) };
    let at = subject.value_at(KEY);
    let Some(stated) = gguf::file_type(id) else {
        let message = format!("{id} is not a known file type");
        return sink.report(Finding::warning("file-type-unknown", message).key(KEY).at(at));
    };
    let kind = FileKind::detect(subject.header);
    if !matches!(kind, FileKind::Model | FileKind::Sidecar) {
        return ControlFlow::Continue(());
    }
    let weights = || subject.header.tensors.iter().filter(|tensor| tensor.shape.len() >= 2);
    let is_used = weights().any(|tensor| tensor.tensor_type == stated.main);
    if is_used || !is_possible(weights(), stated.main) {
        return ControlFlow::Continue(());
    }
    let Some(most) = main_type(weights()) else { return ControlFlow::Continue(()) };
    let message =
        format!("says {}, but no tensor is {}; most are {most}", stated.name, stated.main);
    sink.report(
        Finding::warning("file-type-wrong", message)
            .key(KEY)
            .at(at)
            .help("model lists show the wrong quantization type; correct the key"),
    )
}

/// Returns true if the quantization type could have given most elements its main type.
///
/// Rows that are not a multiple of the block size get other types, as do token embedding and output
/// projection, and MXFP4 applies only to experts.
fn is_possible<'t>(tensors: impl Iterator<Item = &'t TensorInfo>, main: TensorType) -> bool {
    let block = main.block().map_or(1, |(elements, _)| elements);
    let dimensions = if main == TensorType::MXFP4 { 3 } else { 2 };
    let (mut possible, mut all) = (0u64, 0u64);
    for tensor in tensors {
        if matches!(&*tensor.name, "token_embd.weight" | "output.weight") {
            continue;
        }
        let elements = tensor.shape.elements().unwrap_or(0);
        all = all.saturating_add(elements);
        if tensor.shape.len() >= dimensions && tensor.shape.row_len().is_multiple_of(block) {
            possible = possible.saturating_add(elements);
        }
    }
    possible > all / 2
}

/// Returns the type of most elements.
fn main_type<'t>(tensors: impl Iterator<Item = &'t TensorInfo>) -> Option<TensorType> {
    let mut elements = BTreeMap::new();
    for tensor in tensors {
        let count: &mut u64 = elements.entry(tensor.tensor_type.id()).or_default();
        *count = count.saturating_add(tensor.shape.elements().unwrap_or(0));
    }
    let (id, _) = elements.into_iter().max_by_key(|(_, count)| *count)?;
    Some(TensorType::from_id(id))
}
