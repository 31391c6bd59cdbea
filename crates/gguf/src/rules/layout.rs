//! Rules on the layout of tensor data: alignment, order, overlaps, gaps, end of file.

use std::ops::ControlFlow;

use crate::alignment::{self, Alignment};
use crate::finding::{Finding, Sink};
use crate::rules::subject::{Extent, Subject};
use crate::tensor::TensorInfo;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let tensors = &subject.header.tensors;
    // Without a valid alignment, which another rule reports, assume the default.
    let alignment = subject.header.alignment().unwrap_or_default().get();
    let mut by_offset: Vec<usize> = (0..tensors.len()).collect();
    by_offset.sort_by_key(|&i| (tensors[i].offset, tensors[i].byte_len()));
    let along: Vec<&TensorInfo> = by_offset.iter().map(|&i| &tensors[i]).collect();
    let laid_out = contiguous_alignment(&along, alignment);

    let misaligned = |tensor: &&TensorInfo| !tensor.offset.is_multiple_of(alignment);
    let one_cause = match laid_out {
        Some(other) if other < alignment => tensors.iter().filter(misaligned).count(),
        _ => 0,
    };
    if let Some(other) = laid_out.filter(|_| one_cause > 1) {
        let message = format!(
            "{one_cause} of {} tensors are not at a multiple of {alignment}: the data is aligned \
             to {other}",
            tensors.len()
        );
        sink.report(
            Finding::error("tensor-offset-misaligned", message)
                .key(alignment::KEY)
                .at(subject.value_at(alignment::KEY))
                .help("the key is wrong, or the data belongs to another file"),
        )?;
    }
    for (i, tensor) in tensors.iter().enumerate() {
        let mut report =
            |finding: Finding| sink.report(finding.tensor(&*tensor.name).at(subject.tensor_at(i)));
        if misaligned(&tensor) && one_cause < 2 {
            report(Finding::error(
                "tensor-offset-misaligned",
                format!("offset {} is not a multiple of {alignment}", tensor.offset),
            ))?;
        }
        if data_end(tensor).is_none() {
            report(Finding::error(
                "tensor-offset-overflow",
                format!("offset {} plus size does not fit 64 bits", tensor.offset),
            ))?;
        }
    }
    if let Some(file) = subject.file {
        past_end(subject, file, laid_out.is_some(), sink)?;
    }
    order(subject, alignment, &by_offset, laid_out, sink)
}

/// Returns the end of a tensor in the data section; the start if its size is unknown.
fn data_end(tensor: &TensorInfo) -> Option<u64> {
    tensor.offset.checked_add(tensor.byte_len().unwrap_or(0))
}

/// Returns the alignment with which the tensors are contiguous in the order of their data: the one
/// in the metadata, or another if several tensors match it. `None` if there is none.
fn contiguous_alignment(along: &[&TensorInfo], stated: u64) -> Option<u64> {
    // Tensors that do not start at the end of the previous one.
    let astray = |alignment: u64| {
        let mut end = 0u64;
        along.iter().filter(move |tensor| {
            let begin = end.checked_next_multiple_of(alignment);
            end = data_end(tensor).unwrap_or(u64::MAX);
            begin != Some(tensor.offset)
        })
    };
    match astray(stated).take(2).count() {
        0 => return Some(stated),
        1 => return None,
        _ => {}
    }
    let smaller = (0..stated.ilog2()).rev().map(|power| 1 << power);
    let larger = (stated.ilog2() + 1..=Alignment::MAX.ilog2()).map(|power| 1 << power);
    smaller.chain(larger).find(|other| astray(*other).next().is_none())
}

/// Reports tensors beyond the end of the file; one finding for a truncated file.
fn past_end(
    subject: &Subject,
    file: Extent,
    without_holes: bool,
    sink: &mut dyn Sink,
) -> ControlFlow<()> {
    let tensors = &subject.header.tensors;
    let available = file.len.saturating_sub(file.data_start);
    let ends = tensors.iter().map(|tensor| data_end(tensor).unwrap_or(0));
    let cut: Vec<(usize, u64)> = ends.enumerate().filter(|(_, end)| *end > available).collect();
    match cut[..] {
        [] => ControlFlow::Continue(()),
        // A single tensor beyond the end is more likely a wrong offset, unless the others are
        // contiguous up to it.
        [(i, end)] if !without_holes => {
            let message =
                format!("the data ends {} bytes past the end of the file", end - available);
            let finding = Finding::error("tensor-past-end", message)
                .help("the offset is wrong, or the file is truncated: download or copy it again");
            sink.report(finding.tensor(&*tensors[i].name).at(subject.tensor_at(i)))
        }
        _ => {
            let end = cut.iter().map(|(_, end)| *end).max().unwrap_or(0);
            let message = format!(
                "{} are there; {} of {} tensors are truncated",
                size_of_total(file.len, file.data_start.saturating_add(end)),
                cut.len(),
                tensors.len()
            );
            sink.report(
                Finding::error("truncated", message)
                    .at(file.len)
                    .help(
                        "the file is truncated: download or copy it again; `gguf check FILE --against hf:org/repo --repair` \
                         fetches the missing part",
                    ),
            )
        }
    }
}

/// Formats as in `2.0 of 8.4 MB`; in bytes if the rounded numbers are equal.
fn size_of_total(there: u64, whole: u64) -> String {
    let mut unit = (1.0, "bytes");
    for next in [(1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")] {
        if whole as f64 >= next.0 {
            unit = next;
        }
    }
    let (size, name) = unit;
    let shown = |bytes: u64| format!("{:.1}", bytes as f64 / size);
    if size == 1.0 || shown(there) == shown(whole) {
        return format!("{there} of {whole} bytes");
    }
    format!("{} of {} {name}", shown(there), shown(whole))
}

/// Reports overlaps, gaps and wrong order along the data section.
fn order(
    subject: &Subject,
    alignment: u64,
    by_offset: &[usize],
    laid_out: Option<u64>,
    sink: &mut dyn Sink,
) -> ControlFlow<()> {
    let tensors = &subject.header.tensors;
    if !by_offset.is_sorted() {
        sink.report(
            Finding::warning(
                "tensor-order",
                "the tensor data is not in the order of the directory",
            )
            .help("llama.cpp rejects the file; write it again"),
        )?;
    }
    let wider = laid_out.filter(|other| *other > alignment);
    if let Some(other) = wider {
        let message = format!("the data has an alignment of {other}, not {alignment}");
        sink.report(
            Finding::warning("tensor-gap", message)
                .key(alignment::KEY)
                .at(subject.value_at(alignment::KEY))
                .help("llama.cpp rejects the file; set the key, or write it again"),
        )?;
    }
    // `end` is the end of the data so far; unknown after a tensor of unknown size.
    let mut end = Some(0u64);
    for &i in by_offset {
        let tensor = &tensors[i];
        let report = |sink: &mut dyn Sink, finding: Finding| {
            sink.report(finding.tensor(&*tensor.name).at(subject.tensor_at(i)))
        };
        if let Some(end) = end {
            let padded = end.checked_next_multiple_of(alignment).unwrap_or(end);
            if tensor.offset < end && tensor.byte_len() != Some(0) {
                let message =
                    format!("the data overlaps another tensor's by {} bytes", end - tensor.offset);
                report(sink, Finding::error("tensor-overlap", message))?;
            } else if tensor.offset > padded && wider.is_none() {
                let message = format!("{} unused bytes precede its data", tensor.offset - padded);
                let help = "llama.cpp rejects the file; write it again";
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
