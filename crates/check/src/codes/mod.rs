//! The codes of everything that can be wrong: one table.
//!
//! A code is the stable name of a kind of fault, such as `tensor-overlap`. Every [`Finding`] has
//! one, and every [`Error`]. `docs/findings.md` is printed from this table, and `gguf check
//! --explain` prints an entry.
//!
//! ```
//! use gguf::codes;
//! assert!(codes::code("truncated").unwrap().advice.contains("download"));
//! assert_eq!(codes::nearest("tensor-overlaps"), ["tensor-overlap"]);
//! ```
//!
//! [`Finding`]: crate::Finding
//! [`Error`]: crate::Error

mod document;
mod files;
mod graphs;
mod model;
mod requests;
mod sources;
mod text;

pub use document::document;

use gguf::spelling::distance;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its stable name: lower-case words joined by `-`.
    pub name: &'static str,
    /// What it means: a sentence.
    pub meaning: &'static str,
    /// What to do about it: a sentence or two.
    pub advice: &'static str,
}

/// Codes that are about the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// What they are about, as a heading.
    pub title: &'static str,
    /// What they have in common: a sentence.
    pub about: &'static str,
    /// The codes.
    pub codes: &'static [Code],
}

/// A row of the table.
const fn row(name: &'static str, meaning: &'static str, advice: &'static str) -> Code {
    Code { name, meaning, advice }
}

/// Every code that this workspace gives, by area.
pub const CODES: &[Area] = &[
    model::FORMAT,
    model::TENSORS,
    model::KEYS,
    text::TOKENIZER,
    text::TEMPLATES,
    files::SHARDS,
    files::NAMES,
    files::SIDECARS,
    files::DATA,
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

/// The row of a code; `None` if the table has none of this name.
pub fn code(name: &str) -> Option<&'static Code> {
    all().find(|code| code.name == name)
}

/// The names of the codes that are spelt most like `name`, or else have a word of it; at most
/// three.
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
