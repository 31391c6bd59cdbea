//! Rules on where tensor data lie: alignment, order, overlaps, gaps, the end of the file.

use std::ops::ControlFlow;

use crate::finding::{Finding, Sink};
use crate::rules::Subject;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let tensors = &subject.draft.tensors;
    // Without a valid alignment (reported elsewhere) the usual one is the best guess.
    let alignment = subject.draft.alignment().unwrap_or_default();
    for (i, tensor) in tensors.iter().enumerate() {
        let mut report =
            |finding: Finding| sink.report(finding.tensor(&*tensor.name).at(subject.tensor_at(i)));
        if !tensor.offset.is_multiple_of(alignment.get()) {
            report(Finding::error(
                "tensor-offset-misaligned",
                format!("offset {} is no multiple of {}", tensor.offset, alignment.get()),
            ))?;
        }
        let end = tensor.offset.checked_add(tensor.byte_len().unwrap_or(0));
        let Some(end) = end else {
            report(Finding::error(
                "tensor-offset-overflow",
                format!("offset {} plus size does not fit 64 bits", tensor.offset),
            ))?;
            continue;
        };
        let Some(file) = subject.file else { continue };
        let available = file.len.saturating_sub(file.data_start);
        if end > available {
            let message = format!("data end {} bytes past the end of the file", end - available);
            report(
                Finding::error("tensor-past-end", message)
                    .help("the file is truncated: download or copy it again"),
            )?;
        }
    }
    order(subject, alignment.get(), sink)
}

/// Overlaps, gaps and order, seen along the data section.
fn order(subject: &Subject, alignment: u64, sink: &mut dyn Sink) -> ControlFlow<()> {
    let tensors = &subject.draft.tensors;
    let mut by_offset: Vec<usize> = (0..tensors.len()).collect();
    by_offset.sort_by_key(|&i| (tensors[i].offset, tensors[i].byte_len()));
    if !by_offset.is_sorted() {
        sink.report(
            Finding::warning("tensor-order", "tensor data are not in the order of the directory")
                .help("the official reader refuses such a file; write it anew"),
        )?;
    }
    // `end` is where the data so far end; unknown after a tensor of unknown size.
    let mut end = Some(0u64);
    for i in by_offset {
        let tensor = &tensors[i];
        let report = |sink: &mut dyn Sink, finding: Finding| {
            sink.report(finding.tensor(&*tensor.name).at(subject.tensor_at(i)))
        };
        if let Some(end) = end {
            let padded = end.checked_next_multiple_of(alignment).unwrap_or(end);
            if tensor.offset < end && tensor.byte_len() != Some(0) {
                let message = format!(
                    "data overlap those of another tensor by {} bytes",
                    end - tensor.offset
                );
                report(sink, Finding::error("tensor-overlap", message))?;
            } else if tensor.offset > padded {
                let message =
                    format!("{} unused bytes lie before its data", tensor.offset - padded);
                let help = "the official reader refuses such a file; write it anew";
                report(sink, Finding::warning("tensor-gap", message).help(help))?;
            }
        }
        end = match (end, tensor.byte_len()) {
            (Some(end), Some(len)) => Some(end.max(tensor.offset.saturating_add(len))),
            (None, Some(len)) => Some(tensor.offset.saturating_add(len)),
            (_, None) => None,
        };
    }
    match (subject.file, end) {
        (Some(file), Some(end)) => trailing(file.data_start, file.len, end, alignment, sink),
        _ => ControlFlow::Continue(()),
    }
}

fn trailing(
    data_start: u64,
    len: u64,
    end: u64,
    alignment: u64,
    sink: &mut dyn Sink,
) -> ControlFlow<()> {
    let end = data_start.saturating_add(end);
    let padded = end.checked_next_multiple_of(alignment).unwrap_or(end);
    if len <= padded {
        return ControlFlow::Continue(());
    }
    let message = format!("{} bytes follow the last tensor", len - padded);
    sink.report(Finding::warning("data-trailing", message).at(padded))
}
