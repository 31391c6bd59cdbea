//! Rules on the shards of a model together: indices, counts, tensors, keys.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use crate::alignment;
use crate::error::Error;
use crate::finding::{Collector, Finding, Sink, Strict};
use crate::raw_header::RawHeader;
use crate::shard_keys::{COUNT, KEYS, NO, PART_FINGERPRINT, TENSORS_COUNT};
use crate::value::ValueType;

/// Checks that the shards of a model belong together: numbers, counts, keys and duplicate tensors.
///
/// `shards` are file names and headers, the first shard first; a model in one file is one shard.
/// [`check`](crate::check) examines each of them by itself.
pub fn check_shards(shards: &[(&Path, &RawHeader)]) -> Vec<Finding> {
    let mut sink = Collector::new();
    // The collector never breaks.
    let _ = check(shards, &mut sink);
    sink.into_findings()
}

/// Returns the first error that [`check_shards`] would find.
///
/// # Errors
/// [`Error::File`] with the first violated rule on shards.
pub fn require_shards(shards: &[(&Path, &RawHeader)]) -> Result<(), Error> {
    let mut sink = Strict::default();
    let _ = check(shards, &mut sink);
    sink.error.map_or(Ok(()), |finding| Err(finding.into()))
}

fn check(shards: &[(&Path, &RawHeader)], sink: &mut dyn Sink) -> ControlFlow<()> {
    let [(_, first), rest @ ..] = shards else { return ControlFlow::Continue(()) };
    for &(path, header) in shards {
        types(path, header, sink)?;
    }
    if rest.is_empty() {
        return single_file(first, sink);
    }
    for (i, &(path, header)) in shards.iter().enumerate() {
        shard_index(path, header, i, shards.len(), sink)?;
    }
    for &(path, header) in rest {
        same_fingerprint(path, header, first, sink)?;
        same_model(path, header, first, sink)?;
    }
    tensors(shards, sink)
}

/// Readers accept these keys only in their own types.
fn types(path: &Path, header: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    for (key, expected) in KEYS.into_iter().zip([ValueType::U16, ValueType::U16, ValueType::I32]) {
        let Some(value) = header.metadata.get(key) else { continue };
        if value.value_type() != expected {
            let message = format!("{}: is {}, not {expected}", name(path), value.value_type());
            sink.report(
                Finding::warning("shard-key-type", message)
                    .key(key)
                    .help("llama.cpp rejects the file"),
            )?;
        }
    }
    ControlFlow::Continue(())
}

/// A single file may have the keys of a set that it was part of.
fn single_file(header: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    let Some(count @ 2..) = header.metadata.u64(COUNT) else { return ControlFlow::Continue(()) };
    let finding = if header.metadata.u64(TENSORS_COUNT) == Some(header.tensors.len() as u64) {
        let message = format!("states {count} shards, but the file has all tensors");
        Finding::warning("shard-count-stale", message)
            .help("llama.cpp looks for the other shards; remove the `split.` keys")
    } else {
        let number =
            header.metadata.u64(NO).map_or("?".into(), |no| no.saturating_add(1).to_string());
        let message = format!("this is shard {number} of {count}, and the others are unknown");
        Finding::error("shard-incomplete", message)
            .help("name all shards PREFIX-00001-of-00002.gguf and so on, in one directory")
    };
    sink.report(finding.key(COUNT))
}

/// Checks the index and count in the shard at index `i` of `count` files.
fn shard_index(
    path: &Path,
    header: &RawHeader,
    i: usize,
    count: usize,
    sink: &mut dyn Sink,
) -> ControlFlow<()> {
    let help = "the file was renamed, or is a shard of another model";
    match header.metadata.u64(NO) {
        Some(no) if no == i as u64 => {}
        no => sink.report(
            Finding::error("shard-number", disagreement(path, no, i as u64)).key(NO).help(help),
        )?,
    }
    match header.metadata.u64(COUNT) {
        Some(n) if n == count as u64 => ControlFlow::Continue(()),
        n => sink.report(
            Finding::error("shard-count", disagreement(path, n, count as u64))
                .key(COUNT)
                .help(help),
        ),
    }
}

/// Checks that shards of separate runs have the same part fingerprint.
fn same_fingerprint(
    path: &Path,
    header: &RawHeader,
    first: &RawHeader,
    sink: &mut dyn Sink,
) -> ControlFlow<()> {
    let what = match (header.metadata.get(PART_FINGERPRINT), first.metadata.get(PART_FINGERPRINT)) {
        (here, there) if here == there => return ControlFlow::Continue(()),
        (Some(_), Some(_)) => {
            "comes from another input, other options or another program version than the first shard"
        }
        (Some(_), None) => "has a part fingerprint, and the first shard does not",
        _ => "lacks the part fingerprint of the first shard",
    };
    let finding = Finding::error("shard-other-work", format!("{}: {what}", name(path)))
        .key(PART_FINGERPRINT)
        .help("write the parts that differ again, from one input with the same options");
    sink.report(finding)
}

/// Checks that a shard belongs to the first one.
fn same_model(
    path: &Path,
    header: &RawHeader,
    first: &RawHeader,
    sink: &mut dyn Sink,
) -> ControlFlow<()> {
    if header.order != first.order {
        let message = format!("{}: its byte order differs from the first shard's", name(path));
        sink.report(Finding::error("shard-byte-order", message))?;
    }
    let others = header.metadata.iter().filter(|(key, _)| {
        // Each file has its own alignment.
        !KEYS.contains(key) && *key != alignment::KEY && *key != PART_FINGERPRINT
    });
    for (key, value) in others.filter(|&(key, value)| first.metadata.get(key) != Some(value)) {
        let foreign = matches!(key, "general.architecture" | "general.name")
            && first.metadata.get(key).is_some();
        let finding = if foreign {
            let message = format!("{}: is {value}, unlike in the first shard", name(path));
            Finding::error("shard-foreign", message).help("it is a shard of another model")
        } else {
            let message = format!("{}: loaders read keys from the first shard only", name(path));
            Finding::warning("shard-key-ignored", message)
        };
        sink.report(finding.key(key))?;
    }
    ControlFlow::Continue(())
}

/// Checks that every tensor is in one shard only, and that the total matches each shard's count.
fn tensors(shards: &[(&Path, &RawHeader)], sink: &mut dyn Sink) -> ControlFlow<()> {
    let mut shard_of = HashMap::new();
    for (i, &(path, header)) in shards.iter().enumerate() {
        for tensor in &header.tensors {
            match shard_of.insert(&*tensor.name, i) {
                // Duplicates within one file are reported for that file.
                Some(other) if other != i => {
                    let message = format!("is in {} and in {}", name(shards[other].0), name(path));
                    sink.report(
                        Finding::error("shard-tensor-duplicate", message)
                            .tensor(&*tensor.name)
                            .help("one of the files is a shard of another model"),
                    )?;
                }
                _ => {}
            }
        }
    }
    let total: u64 = shards.iter().map(|(_, header)| header.tensors.len() as u64).sum();
    for &(path, header) in shards {
        match header.metadata.u64(TENSORS_COUNT) {
            Some(n) if n == total => {}
            n => sink.report(
                Finding::error("shard-tensor-count", disagreement(path, n, total))
                    .key(TENSORS_COUNT)
                    .help("one of the files is a shard of another model"),
            )?,
        }
    }
    ControlFlow::Continue(())
}

fn disagreement(path: &Path, found: Option<u64>, expected: u64) -> String {
    match found {
        Some(found) => format!("{}: is {found} instead of {expected}", name(path)),
        None => format!("{}: is missing instead of {expected}", name(path)),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
