//! Parser for `MODEL:REGEX`, both of which may contain colons.

use regex::Regex;

/// Splits at the last colon that is not part of the regex syntax: of a group (`(?:...)`, `(?i:...)`), a class
/// (`[[:alpha:]]`, `\p{sc:Latin}`) or an escape (`\:`); nor of a drive (`C:\`).
///
/// # Errors
///
/// If there is no such colon, or the regex is invalid.
pub fn parse(text: &str) -> Result<(String, Regex), String> {
    const FORM: &str = "expected MODEL:REGEX";
    let mut colons = text.rmatch_indices(':').map(|(at, _)| at);
    let at = colons.find(|at| !is_syntax(text, *at)).ok_or(FORM)?;
    let (model, pattern) = (&text[..at], &text[at + 1..]);
    if model.is_empty() || pattern.is_empty() {
        return Err(FORM.into());
    }
    let pattern = Regex::new(pattern).map_err(|fault| {
        format!("{fault}\nfor patterns with other colons, use --graft-from MODEL REGEX")
    })?;
    Ok((model.to_owned(), pattern))
}

/// Whether the colon at `at` is part of the regex syntax.
fn is_syntax(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + 1..]);
    let flags = |c: char| c.is_ascii_alphabetic() || c == '-';
    let group = before.trim_end_matches(flags).ends_with("(?");
    let class = before.ends_with("[") || (after.starts_with(']') && before.contains("[:"));
    let property = before.rfind('{').is_some_and(|brace| {
        let name = before[..brace].ends_with("\\p") || before[..brace].ends_with("\\P");
        name && !before[brace..].contains('}')
    });
    let drive = before.len() == 1
        && before.starts_with(|c: char| c.is_ascii_alphabetic())
        && after.starts_with(['\\', '/']);
    group || class || property || drive || before.ends_with('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_the_last_colon_outside_regex_syntax() {
        for (text, model, pattern) in [
            ("m.gguf:blk", "m.gguf", "blk"),
            ("m.gguf:(?:a|b)", "m.gguf", "(?:a|b)"),
            ("m.gguf:^(?i:a|(?s-m:b))$", "m.gguf", "^(?i:a|(?s-m:b))$"),
            ("m.gguf:[[:alpha:]][^[:digit:]]", "m.gguf", "[[:alpha:]][^[:digit:]]"),
            (r"m.gguf:a\:b\p{sc:Latin}", "m.gguf", r"a\:b\p{sc:Latin}"),
            ("hf:org/repo:(?:a|b)", "hf:org/repo", "(?:a|b)"),
            ("hf:org/repo:Q4_K_M:blk", "hf:org/repo:Q4_K_M", "blk"),
            ("hf:org/repo:a.gguf@main:[[:alpha:]]", "hf:org/repo:a.gguf@main", "[[:alpha:]]"),
            ("https://host:8080/m.gguf:(?:a)", "https://host:8080/m.gguf", "(?:a)"),
            (r"C:\models\m.gguf:blk\.0", r"C:\models\m.gguf", r"blk\.0"),
        ] {
            let (found, regex) = parse(text).unwrap();
            assert_eq!((found.as_str(), regex.as_str()), (model, pattern), "{text}");
        }
        for wrong in ["m.gguf", "(?:a)", ":a", "m.gguf:", "", r"C:\models\m.gguf"] {
            assert_eq!(parse(wrong).unwrap_err(), "expected MODEL:REGEX", "{wrong}");
        }
        assert!(parse("m.gguf:(a").unwrap_err().ends_with("use --graft-from MODEL REGEX"));
    }
}
