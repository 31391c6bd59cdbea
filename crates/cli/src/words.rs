//! What users say to a model: a text, or token ids.

use std::path::Path;

use crate::failure::Failure;

/// The text itself, or that of the file; empty if there is neither.
pub fn text(prompt: Option<&str>, file: Option<&Path>) -> Result<String, Failure> {
    match (prompt, file) {
        (Some(prompt), _) => Ok(prompt.to_owned()),
        (_, Some(file)) => Ok(gguf_kit::read_text(file)?),
        _ => Ok(String::new()),
    }
}

/// Ids, apart or as a list.
pub fn ids(text: &str) -> impl Iterator<Item = Result<u32, Failure>> {
    let words = text.split(|c: char| c.is_whitespace() || ",[]".contains(c));
    words
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().map_err(|_| Failure::Usage(format!("{word:?} is no token id"))))
}
