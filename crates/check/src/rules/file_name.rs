//! Rules on file names: the naming convention, and agreement with the metadata.

use std::ops::ControlFlow;

use gguf::{Collector, FileKind, Finding, ModelName, NameKind, RawHeader, Sidecar, Sink};

/// Returns the findings about the name (without directories) of a file with this header.
///
/// Findings are informations, except if the name states another kind of file, shard or encoding.
pub fn check_name(file_name: &str, header: &RawHeader) -> Vec<Finding> {
    let mut sink = Collector::new();
    // The collector never breaks.
    let _ = check(file_name, header, &mut sink);
    sink.into_findings()
}

fn check(file_name: &str, header: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    let name: ModelName = match file_name.parse() {
        Ok(name) => name,
        Err(_) => {
            // Lenient names have fewer components to check.
            let fault = match ModelName::parse_lenient(file_name) {
                Ok(name) => {
                    encoding(&name, header, sink)?;
                    return shard(&name, header, sink);
                }
                Err(fault) => fault,
            };
            // A name of one word states nothing.
            if !file_name.contains('-') {
                return ControlFlow::Continue(());
            }
            return sink.report(
                Finding::note("name-convention", format!("the file name: {fault}")).help(
                    "shared models have names such as Qwen3-8B-Q4_K_M.gguf; `gguf name --canonical` prints that of the file",
                ),
            );
        }
    };
    components(&name, header, sink)?;
    encoding(&name, header, sink)?;
    kind(&name, header, sink)?;
    shard(&name, header, sink)
}

/// Compares components with the keys that have them too.
fn components(name: &ModelName, header: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    let stated = ModelName::from_metadata(&header.metadata, None);
    let base = header.metadata.str("general.basename").map(|_| &stated.base_name);
    for (key, found, stated) in [
        ("general.basename", Some(&name.base_name), base),
        ("general.size_label", name.size_label.as_ref(), stated.size_label.as_ref()),
        ("general.finetune", name.fine_tune.as_ref(), stated.fine_tune.as_ref()),
        ("general.version", name.version.as_ref(), stated.version.as_ref()),
    ] {
        let (Some(found), Some(stated)) = (found, stated) else { continue };
        if normalized(found) != normalized(stated) {
            let message = format!("is {stated:?}, the file name says {found:?}");
            sink.report(Finding::note("name-metadata", message).key(key))?;
        }
    }
    ControlFlow::Continue(())
}

/// Returns letters and digits in lower case, without the `v` of versions: spellings vary.
fn normalized(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    let text = match text.strip_prefix('v') {
        Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) => version,
        _ => &text,
    };
    text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').collect()
}

fn encoding(name: &ModelName, header: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    const KEY: &str = "general.file_type";
    let stated = header.metadata.u64(KEY).and_then(gguf::file_type);
    let (Some(found), Some(stated)) = (&name.encoding, stated) else {
        return ControlFlow::Continue(());
    };
    // Encodings of other tools are valid.
    if gguf::file_type_named(found).is_none() || found.eq_ignore_ascii_case(stated.name) {
        return ControlFlow::Continue(());
    }
    let message = format!("is that of {}, the file name says {found}", stated.name);
    sink.report(Finding::warning("name-encoding", message).key(KEY).help("rename the file"))
}

fn kind(name: &ModelName, header: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    let general_type = header.metadata.str("general.type");
    let vocabulary = FileKind::detect(header) == FileKind::Vocabulary;
    let (found, fits) = match (name.kind, name.sidecar) {
        (Some(NameKind::Lora), _) => ("an adapter", general_type == Some("adapter")),
        (Some(NameKind::Vocab), _) => ("a vocabulary", vocabulary),
        (None, Some(Sidecar::Mmproj)) => (
            "a projector",
            general_type == Some("mmproj") || header.metadata.architecture() == Some("clip"),
        ),
        // An MTP file has the keys of its model.
        (None, Some(Sidecar::Mtp)) => return ControlFlow::Continue(()),
        (None, None) => {
            ("a model", !vocabulary && !matches!(general_type, Some("adapter" | "mmproj")))
        }
    };
    if fits {
        return ControlFlow::Continue(());
    }
    let message = format!("the file name is that of {found}; the file is not {found}");
    sink.report(Finding::warning("name-kind", message).key("general.type").help("rename the file"))
}

fn shard(name: &ModelName, header: &RawHeader, sink: &mut dyn Sink) -> ControlFlow<()> {
    let value = |key| header.metadata.u64(key);
    // Shards count from 0 in metadata, from 1 in names.
    let stated = value("split.no").zip(value("split.count")).filter(|(_, count)| *count > 1);
    let stated = stated.map(|(no, count)| (no.saturating_add(1), count));
    let found = name.shard.map(|shard| (u64::from(shard.number), u64::from(shard.count)));
    // A single shard is a whole model.
    let found = found.filter(|(_, count)| *count > 1);
    if stated == found {
        return ControlFlow::Continue(());
    }
    let describe = |shard: Option<(u64, u64)>| {
        shard.map_or("a whole model".to_owned(), |(no, count)| format!("shard {no} of {count}"))
    };
    let message = format!("is {}, the file name says {}", describe(stated), describe(found));
    sink.report(
        Finding::warning("name-shard", message)
            .key("split.no")
            .help("programs find the other shards by name: rename the file"),
    )
}
