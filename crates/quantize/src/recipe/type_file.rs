//! Files that say which tensor gets which type: `PATTERN=TYPE` entries between blanks, as the
//! llama.cpp's `--tensor-type-file` has them. Lines that begin with `#` are remarks.

use gguf::TensorType;
use regex::Regex;

/// An entry that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; expected PATTERN=TYPE such as `ffn_down=q6_k`")]
pub struct TypeFileError {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// One `PATTERN=TYPE`: a regular expression that is looked for in tensor names, and a tensor type
/// by name.
///
/// # Errors
/// What is wrong with it.
pub fn parse_entry(entry: &str) -> Result<(Regex, TensorType), String> {
    let (pattern, ty) = entry.rsplit_once('=').ok_or_else(|| format!("no `=` in `{entry}`"))?;
    if pattern.is_empty() {
        return Err(format!("no pattern in `{entry}`"));
    }
    let pattern = Regex::new(pattern).map_err(|fault| fault.to_string())?;
    Ok((pattern, ty.parse().map_err(|fault: gguf::UnknownTypeName| fault.to_string())?))
}

/// The entries of a file, in order: the first whose pattern is found in a name counts.
///
/// # Errors
/// The first entry that is none.
pub fn parse_type_file(text: &str) -> Result<Vec<(Regex, TensorType)>, TypeFileError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    lines
        .flat_map(|(i, line)| line.split_whitespace().map(move |entry| (i, entry)))
        .map(|(i, entry)| parse_entry(entry).map_err(|what| TypeFileError { line: i + 1, what }))
        .collect()
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
            assert_eq!(parse_type_file(text).unwrap_err().line, line, "{text}");
        }
    }
}
