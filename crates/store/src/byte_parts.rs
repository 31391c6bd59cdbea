//! Files that were cut in bytes, as `split` does, and not into shards.

use std::io::Read;
use std::path::Path;

use gguf::{Error, Finding};

/// Adds advice to a finding about a file that is a part of a file that was cut in bytes. Other findings are unchanged.
pub fn explain(finding: Finding, path: &Path) -> Finding {
    match finding.code {
        "magic" | "truncated" | "tensor-past-end" => match advice(path) {
            Some(help) => finding.help(help),
            None => finding,
        },
        _ => finding,
    }
}

/// Adds advice to an error, as [`explain`].
pub fn explain_error(error: Error, path: &Path) -> Error {
    match error {
        Error::File(finding) => Error::File(Box::new(explain(*finding, path))),
        other => other,
    }
}

/// Returns the advice if the file has a counter in its name, and the files with all counters before it are beside it: the
/// first one begins as GGUF, and the others do not.
fn advice(path: &Path) -> Option<String> {
    let (prefix, _) = counter(path.file_name()?.to_str()?)?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut parts: Vec<(usize, String)> = std::fs::read_dir(folder.unwrap_or(Path::new(".")))
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| {
            let (other, number) = counter(&name)?;
            (other == prefix).then_some((number, name.clone()))
        })
        .collect();
    parts.sort_unstable();
    let is_gguf = |name: &str| {
        let mut start = [0; 4];
        let file = std::fs::File::open(path.with_file_name(name));
        file.and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"GGUF"
    };
    let (first, others) = parts.split_first()?;
    let is_cut = first.0 < 2 && is_gguf(&first.1) && others.iter().all(|(_, name)| !is_gguf(name));
    let is_whole = parts.iter().zip(first.0..).all(|((number, _), expected)| *number == expected);
    if !is_cut || !is_whole || others.is_empty() {
        return None;
    }
    let whole = match prefix.find(".gguf") {
        Some(end) => &prefix[..end + 5],
        None => "model.gguf",
    };
    let names: Vec<&str> = parts.iter().map(|(_, name)| name.as_str()).collect();
    Some(format!(
        "the file was cut in bytes: join the parts with cat, in order: `cat {} > {whole}`",
        names.join(" ")
    ))
}

/// Returns the name before the counter of a part, and its number: `m.gguf.part2of3`, `m.gguf-split-b`, `m.gguf.01`,
/// `m.gguf.partab`.
fn counter(name: &str) -> Option<(&str, usize)> {
    let is_separator = |char: char| matches!(char, '.' | '-' | '_');
    let digits_from = |text: &str| text.trim_end_matches(|char: char| char.is_ascii_digit()).len();
    // `of3`, with or without separators.
    let body = match name[..digits_from(name)].trim_end_matches(is_separator).strip_suffix("of") {
        Some(rest) if digits_from(name) < name.len() => rest.trim_end_matches(is_separator),
        _ => name,
    };
    let is_prefix = |prefix: &str| {
        prefix.ends_with(is_separator) || prefix.ends_with("part") || prefix.ends_with("split")
    };
    let (prefix, digits) = body.split_at(digits_from(body));
    if (1..=5).contains(&digits.len()) {
        return is_prefix(prefix).then_some((prefix, digits.parse().ok()?));
    }
    let word = body.rsplit(is_separator).next()?;
    let letters = word.strip_prefix("part").or(word.strip_prefix("split")).unwrap_or(word);
    let is_counter =
        (1..=3).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_lowercase());
    let prefix = &body[..body.len() - letters.len()];
    (is_counter && is_prefix(prefix)).then(|| {
        let digits = letters.bytes().map(|byte| usize::from(byte - b'a'));
        (prefix, digits.fold(0, |number, digit| 26 * number + digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_parts() {
        for (name, expected) in [
            ("m.gguf.part2of3", Some(("m.gguf.part", 2))),
            ("m.gguf-split-b", Some(("m.gguf-split-", 1))),
            ("m.gguf.01", Some(("m.gguf.", 1))),
            ("m.gguf.partab", Some(("m.gguf.part", 1))),
            ("m.gguf_part_3_of_4", Some(("m.gguf_part_", 3))),
            ("m.gguf.ba", Some(("m.gguf.", 26))),
            ("0.A~\u{e9}", None),
            ("m.gguf", None),
            ("m2.gguf", None),
            ("m.gguf.part", None),
            ("part", None),
            ("", None),
        ] {
            assert_eq!(counter(name), expected, "{name}");
        }
    }

    #[test]
    fn parts_are_joined_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let first = write("m.gguf.part1of3", b"GGUF\x03");
        let third = write("m.gguf.part3of3", b"end");
        assert_eq!(advice(&first), None);
        write("m.gguf.part2of3", b"middle");
        let expected = "in order: `cat m.gguf.part1of3 m.gguf.part2of3 m.gguf.part3of3 > m.gguf`";
        for part in [first, third] {
            let finding = explain(Finding::error("magic", "x"), &part);
            assert!(finding.help.ends_with(expected), "{}", finding.help);
        }
        // Two models are not parts.
        let model = write("b.gguf.0", b"GGUF\x03");
        write("b.gguf.1", b"GGUF\x03");
        assert_eq!(advice(&model), None);
    }
}
