//! Tensor type files: `PATTERN=TYPE` entries separated by whitespace, as in llama.cpp's
//! `--tensor-type-file`. Lines that begin with `#` are comments.

use gguf::{Error, Finding, TensorType, UnknownTypeName};

use super::name_pattern::NamePattern;

/// Parses one `PATTERN=TYPE`: a regular expression to search for in tensor names, and the name of a
/// tensor type.
///
/// # Errors
/// Returns [`Error::Caller`] with code `type-list` if the entry is invalid.
pub fn parse_entry(entry: &str) -> Result<(NamePattern, TensorType), Error> {
    entry_of(entry).map_err(|what| Error::request("type-list", what, ""))
}

/// Parses the entries of a file in order: the first matching pattern counts.
///
/// # Errors
/// Returns [`Error::File`] with code `type-list` and the line of the first invalid entry.
pub fn parse_type_file(text: &str) -> Result<Vec<(NamePattern, TensorType)>, Error> {
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

/// Parses an entry, or returns a description of the error.
fn entry_of(entry: &str) -> Result<(NamePattern, TensorType), String> {
    let (pattern, ty) = entry.rsplit_once('=').ok_or_else(|| format!("no `=` in `{entry}`"))?;
    if pattern.is_empty() {
        return Err(format!("no pattern in `{entry}`"));
    }
    let pattern = NamePattern::new(pattern).map_err(|fault| fault.to_string())?;
    Ok((pattern, ty.parse().map_err(|fault: UnknownTypeName| fault.to_string())?))
}

/// Writes a file that assigns exactly these types to these tensors, one anchored pattern per line,
/// for any program that reads such files.
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
    fn written_files_match_each_tensor_exactly() {
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
    fn errors_name_the_line() {
        let entries = parse_type_file("attn_q=q8_0 ffn_(up|gate)=Q4_K\n\n  # a=b\n").unwrap();
        assert_eq!((entries[1].0.as_str(), entries[1].1), ("ffn_(up|gate)", TensorType::Q4_K));
        for (text, line) in [("a=q8_0\nb", 2), ("=q8_0", 1), ("a=q8_0\n\n(=q8_0", 3), ("a=x", 1)] {
            let error = parse_type_file(text).unwrap_err();
            assert!(error.to_string().starts_with(&format!("line {line}: ")), "{text}: {error}");
            assert_eq!((error.code(), error.fault()), ("type-list", gguf::Fault::Input));
        }
    }
}
