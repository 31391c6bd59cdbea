//! The table of all codes of findings and errors.
//!
//! A code is the stable name of a kind of fault, such as `tensor-overlap`. Every [`gguf::Finding`] and
//! every [`gguf::Error`] has one. `docs/findings.md` is generated from this table, and `gguf check
//! --explain` prints an entry.
//!
//! ```
//! use gguf_check::codes;
//! assert!(codes::code("truncated").unwrap().advice.contains("Download"));
//! assert_eq!(codes::nearest("tensor-overlaps"), ["tensor-overlap"]);
//! ```

mod document;
mod files;
mod graphs;
mod model;
mod requests;
mod scan;
mod signatures;
mod sources;
mod text;

pub use document::document;

use gguf::suggest::distance;

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Stable name: lower-case words joined by `-`.
    pub name: &'static str,
    /// Meaning, in one sentence.
    pub meaning: &'static str,
    /// Advice, in one or two sentences.
    pub advice: &'static str,
}

/// Codes about one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Heading.
    pub title: &'static str,
    /// Subject, in one sentence.
    pub about: &'static str,
    /// Codes, in the order of the document.
    pub codes: &'static [Code],
}

/// A row of the table.
const fn row(name: &'static str, meaning: &'static str, advice: &'static str) -> Code {
    Code { name, meaning, advice }
}

/// All codes of the workspace, by area.
pub const CODES: &[Area] = &[
    model::FORMAT,
    model::TENSORS,
    model::KEYS,
    text::TOKENIZER,
    text::TEMPLATES,
    scan::SCAN,
    signatures::SIGNATURES,
    files::SHARDS,
    files::NAMES,
    files::SIDECARS,
    files::DATA,
    files::COPIES,
    files::EDITS,
    sources::CHECKPOINTS,
    sources::CONFIGURATION,
    sources::VOCABULARY,
    sources::ADAPTERS,
    sources::IMATRIX,
    sources::LEGACY,
    graphs::GRAPHS,
    requests::REQUESTS,
    requests::ENVIRONMENT,
];

fn all() -> impl Iterator<Item = &'static Code> {
    CODES.iter().flat_map(|area| area.codes)
}

/// Returns the row of a code; `None` if the table does not have it.
pub fn code(name: &str) -> Option<&'static Code> {
    all().find(|code| code.name == name)
}

/// Returns up to three codes with the closest spelling, or else with a word in common.
pub fn nearest(name: &str) -> Vec<&'static str> {
    const SHOWN: usize = 3;
    let far = name.len() / 5 + 1;
    let spelt = |code: &Code| Some((distance(code.name, name, far)?, code.name));
    let mut near: Vec<_> = all().filter_map(spelt).collect();
    near.sort_unstable();
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    let shared = |code: &Code| code.name.split('-').filter(|word| words.contains(word)).count();
    if near.is_empty() {
        // The most words in common first.
        near = all().map(|code| (usize::MAX - shared(code), code.name)).collect();
        near.retain(|(unlike, _)| *unlike < usize::MAX);
        near.sort_unstable();
    }
    near.into_iter().map(|(_, name)| name).take(SHOWN).collect()
}
