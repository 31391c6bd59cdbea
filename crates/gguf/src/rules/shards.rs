//! Rules on the files of one model taken together: numbers, counts, tensors, whose they are.

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
/// [`Error::File`] with the first rule on shards that is broken.
pub fn require_shards(shards: &[(&Path, &RawHeader)]) -> Result<(), Error> {
    let mut sink = Strict::default();
    let _ = check(shards, &mut sink);
    sink.error.map_or(Ok(()), |finding| Err(finding.into()))
}

fn check(shards: &[(&Path, &RawHeader)], sink: &mut dyn Sink) -> ControlFlow<()> {
    let [(_, first), rest @ ..] = shards else { return ControlFlow::Continue(()) };
    for &(path, draft) in shards {
        types(path, draft, sink)?;
    }
    if rest.is_empty() {
        return alone(first, sink);
    }
    for (i, &(path, draft)) in shards.iter().enumerate() {
        place(path, draft, i, shards.len(), sink)?;
    }
    for &(path, draft) in rest {
        work(path, draft, first, sink)?;
        kinship(path, draft, first, sink)?;
    }
    tensors(shards, sink)
}

/// Readers take these keys in their own types only.
fn types(path: &Path, draft: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    for (key, wanted) in KEYS.into_iter().zip([ValueType::U16, ValueType::U16, ValueType::I32]) {
        let Some(value) = draft.metadata.get(key) else { continue };
        if value.value_type() != wanted {
            let message = format!("{}: is {}, not {wanted}", name(path), value.value_type());
            sink.report(
                Finding::warning("shard-key-type", message)
                    .key(key)
                    .help("llama.cpp rejects the file"),
            )?;
        }
    }
    ControlFlow::Continue(())
}

/// A file by itself may carry the keys of a set it was part of.
fn alone(draft: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    let Some(count @ 2..) = draft.metadata.u64(COUNT) else { return ControlFlow::Continue(()) };
    let finding = if draft.metadata.u64(TENSORS_COUNT) == Some(draft.tensors.len() as u64) {
        let message = format!("states {count} shards, but the file has all tensors");
        Finding::warning("shard-count-stale", message)
            .help("llama.cpp looks for the other shards; remove the `split.` keys")
    } else {
        let number =
            draft.metadata.u64(NO).map_or("?".into(), |no| no.saturating_add(1).to_string());
        let message = format!("this is shard {number} of {count}, and the others are unknown");
        Finding::error("shard-incomplete", message)
            .help("name all shards PREFIX-00001-of-00002.gguf and so on, in one directory")
    };
    sink.report(finding.key(COUNT))
}

/// What a shard says of its place among `count` files, where it is number `i` from 0.
fn place(
    path: &Path,
    draft: &RawHeader,
    i: usize,
    count: usize,
    sink: &mut dyn Sink,
) -> ControlFlow<()> {
    let help = "the file was renamed, or is a shard of another model";
    match draft.metadata.u64(NO) {
        Some(no) if no == i as u64 => {}
        no => sink.report(
            Finding::error("shard-number", disagreement(path, no, i as u64)).key(NO).help(help),
        )?,
    }
    match draft.metadata.u64(COUNT) {
        Some(n) if n == count as u64 => ControlFlow::Continue(()),
        n => sink.report(
            Finding::error("shard-count", disagreement(path, n, count as u64))
                .key(COUNT)
                .help(help),
        ),
    }
}

/// Whether shards that were made apart were made of the same input, in the same way.
fn work(path: &Path, draft: &RawHeader, first: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    let what = match (draft.metadata.get(PART_FINGERPRINT), first.metadata.get(PART_FINGERPRINT)) {
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

/// Whether a shard belongs with the first one.
fn kinship(
    path: &Path,
    draft: &RawHeader,
    first: &RawHeader,
    sink: &mut dyn Sink,
) -> ControlFlow<()> {
    if draft.order != first.order {
        let message = format!("{}: its byte order differs from the first shard's", name(path));
        sink.report(Finding::error("shard-byte-order", message))?;
    }
    let others = draft.metadata.iter().filter(|(key, _)| {
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

/// Every tensor in one shard only, and as many as each shard says.
fn tensors(shards: &[(&Path, &RawHeader)], sink: &mut dyn Sink) -> ControlFlow<()> {
    let mut homes = HashMap::new();
    for (i, &(path, draft)) in shards.iter().enumerate() {
        for tensor in &draft.tensors {
            match homes.insert(&*tensor.name, i) {
                // Twice in one file is a matter of that file.
                Some(home) if home != i => {
                    let message = format!("is in {} and in {}", name(shards[home].0), name(path));
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
    let total: u64 = shards.iter().map(|(_, draft)| draft.tensors.len() as u64).sum();
    for &(path, draft) in shards {
        match draft.metadata.u64(TENSORS_COUNT) {
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

fn disagreement(path: &Path, says: Option<u64>, is: u64) -> String {
    match says {
        Some(says) => format!("{}: is {says} instead of {is}", name(path)),
        None => format!("{}: is missing instead of {is}", name(path)),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
