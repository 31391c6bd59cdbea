//! Flags with optional values.

use std::path::Path;

/// Returns the pattern after a flag. A word that is a model is not a pattern, and becomes the first source.
pub fn pattern_or_source(word: Option<String>, sources: &mut Vec<String>) -> Option<String> {
    let word = word?;
    let is_remote = word.contains("://") || word.starts_with("hf:");
    if is_remote || Path::new(&word).exists() || sources.is_empty() && word.ends_with(".gguf") {
        sources.insert(0, word);
        return None;
    }
    Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_not_patterns() {
        let split = |word: &str, sources: &[&str]| {
            let mut sources: Vec<String> = sources.iter().map(|&word| word.to_owned()).collect();
            let pattern = pattern_or_source(Some(word.to_owned()), &mut sources);
            (pattern, sources.join(" "))
        };
        assert_eq!(split("general.*", &["m.gguf"]), (Some("general.*".into()), "m.gguf".into()));
        assert_eq!(split("m.gguf", &[]), (None, "m.gguf".into()));
        assert_eq!(split("hf:a/b", &["m.gguf"]), (None, "hf:a/b m.gguf".into()));
        assert_eq!(split(".", &[]), (None, ".".into()));
        assert_eq!(pattern_or_source(None, &mut Vec::new()), None);
    }
}
