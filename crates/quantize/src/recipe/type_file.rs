//! Files that say which tensor gets which type: `PATTERN=TYPE` entries between blanks, as the
//! llama.cpp's `--tensor-type-file` has them. Lines that begin with `#` are remarks.

use gguf::{Error, Finding, TensorType, UnknownTypeName};
use regex::Regex;

/// One `PATTERN=TYPE`: a regular expression that is looked for in tensor names, and a tensor type
/// by name.
///
/// # Errors
/// [`Error::Caller`] with code `type-list` if it is none.
pub fn parse_entry(entry: &str) -> Result<(Regex, TensorType), Error> {
    entry_of(entry).map_err(|what| Error::request("type-list", what, ""))
}

/// The entries of a file, in order: the first whose pattern is found in a name counts.
///
/// # Errors
/// [`Error::File`] with code `type-list` and the line of the first entry that is none.
pub fn parse_type_file(text: &str) -> Result<Vec<(Regex, TensorType)>, Error> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    lines
        .flat_map(|(i, line)| line.split_whitespace().map(move |entry| (i + 1, entry)))
        .map(|(line, entry)| {
            entry_of(entry).map_err(|what| {
                Finding::error("type-list", format!("line {line}: {what}"))
                    .help("expected PATTERN=TYPE such as `ffn_down=q6_k`")
                    .into()
            })
        })
        .collect()
}

/// The entry, or what is wrong with it.
fn entry_of(entry: &str) -> Result<(Regex, TensorType), String> {
    let (pattern, ty) = entry.rsplit_once('=').ok_or_else(|| format!("no `=` in `{entry}`"))?;
    if pattern.is_empty() {
        return Err(format!("no pattern in `{entry}`"));
    }
    let pattern = Regex::new(pattern).map_err(|fault| fault.to_string())?;
    Ok((pattern, ty.parse().map_err(|fault: UnknownTypeName| fault.to_string())?))
}

/// The file that gives exactly these tensors these types, one entry per line: for any program that
/// reads such files, since each pattern is anchored at both ends.
pub fn write_type_file<'n>(tensors: impl IntoIterator<Item = (&'n str, TensorType)>) -> String {
    let line = |(name, ty): (&str, TensorType)| {
        format!("^{}$={}\n", regex::escape(name), ty.name().to_ascii_lowercase())
    };
    tensors.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_singles_out_each_tensor() {
        let tensors = [
            ("blk.1.ffn_down.weight", TensorType::Q6_K),
            ("blk.11.ffn_down.weight", TensorType::IQ4_XS),
            ("output.weight", TensorType::Q8_0),
        ];
        let text = write_type_file(tensors);
        assert!(text.starts_with("^blk\\.1\\.ffn_down\\.weight$=q6_k\n"), "{text}");
        let entries = parse_type_file(&format!("# lifted\n{text}")).unwrap();
        for (name, ty) in tensors {
            let found: Vec<_> = entries.iter().filter(|(p, _)| p.is_match(name)).collect();
            assert_eq!((found.len(), found[0].1), (1, ty), "{name}");
        }
    }

    #[test]
    fn faults_name_their_line() {
        let entries = parse_type_file("attn_q=q8_0 ffn_(up|gate)=Q4_K\n\n  # a=b\n").unwrap();
        assert_eq!((entries[1].0.as_str(), entries[1].1), ("ffn_(up|gate)", TensorType::Q4_K));
        for (text, line) in [("a=q8_0\nb", 2), ("=q8_0", 1), ("a=q8_0\n\n(=q8_0", 3), ("a=x", 1)] {
            let error = parse_type_file(text).unwrap_err();
            assert!(error.to_string().starts_with(&format!("line {line}: ")), "{text}: {error}");
            assert_eq!((error.code(), error.fault()), ("type-list", gguf::Fault::Input));
        }
    }
}
