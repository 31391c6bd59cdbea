//! Findings about the texts that two tokenizers encode differently.

use gguf::{Error, Finding};

use super::{CORPUS, Difference, TokenizerDiff};

/// Maximum number of differences with details.
const MAX_DETAILS: usize = 10;

/// Approximate size in bytes of the texts into which the corpus is split.
const TEXT_LEN: usize = 512;

impl TokenizerDiff<'_> {
    /// Returns a finding for each of the first texts that the tokenizers encode differently, and
    /// one with the total number. Compares built-in texts, added tokens, and the lines of `corpus`.
    ///
    /// # Errors
    /// If `tokenizer.json` fails on a text.
    pub fn findings(&self, corpus: &str) -> Result<Vec<Finding>, Error> {
        let added = self.added_tokens();
        let texts = CORPUS.iter().copied().chain(added.iter().map(String::as_str));
        let mut findings: Vec<Finding> = self.bos_eos()?.iter().map(finding).collect();
        let (mut texts_len, mut different) = (0, 0);
        for text in texts.chain(texts_of(corpus)) {
            texts_len += 1;
            if different >= MAX_DETAILS {
                different += usize::from(self.differs(text)?);
            } else if let Some(difference) = self.text(text)? {
                different += 1;
                // Texts that differ for the same reason give equal findings.
                let finding = finding(&difference);
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        if different > 0 {
            let message = format!("{different} of {texts_len} texts have other ids");
            findings.push(
                Finding::error("tokenizer-difference", message)
                    .help("the model gets other tokens than in its training; convert it again"),
            );
        }
        Ok(findings)
    }
}

fn finding(difference: &Difference) -> Finding {
    let Difference { text, ours, theirs, rule } = difference;
    let message = format!("{text:?}: {} here, {} there; {rule}", list(ours), list(theirs));
    Finding::error("tokenizer-difference", message)
}

/// Formats the first ids and the number of the others.
pub(super) fn list(ids: &[u32]) -> String {
    const MAX_IDS: usize = 8;
    let first: Vec<_> = ids.iter().take(MAX_IDS).map(u32::to_string).collect();
    let more = ids.len().saturating_sub(MAX_IDS);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    format!("[{}{more}]", first.join(", "))
}

/// Splits the corpus into texts of whole lines.
fn texts_of(mut corpus: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let start = corpus.floor_char_boundary(TEXT_LEN);
        let rest = corpus.get(start..)?;
        let end = rest.find('\n').map_or(corpus.len(), |line| start + line + 1);
        let (part, rest) = corpus.split_at(end);
        corpus = rest;
        Some(part).filter(|part| !part.is_empty())
    })
}
