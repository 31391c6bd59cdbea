//! Prompts and token ids on the command line.

use std::path::Path;

use crate::failure::Failure;

/// Returns the prompt, or the text of the file; empty without either.
pub fn text(prompt: Option<&str>, file: Option<&Path>) -> Result<String, Failure> {
    match (prompt, file) {
        (Some(prompt), _) => Ok(prompt.to_owned()),
        (_, Some(file)) => Ok(gguf_kit::read_text(file)?),
        _ => Ok(String::new()),
    }
}

/// Parses token ids, separated by spaces or as a JSON list.
pub fn ids(text: &str) -> impl Iterator<Item = Result<u32, Failure>> {
    let words = text.split(|c: char| c.is_whitespace() || ",[]".contains(c));
    words
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().map_err(|_| Failure::Usage(format!("{word:?} is not a token id"))))
}
