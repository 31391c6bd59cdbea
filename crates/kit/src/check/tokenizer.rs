//! A model's tokenizer beside the one it was made of.

use std::path::Path;

use gguf::Finding;
use gguf_tokenizer::diff::{CORPUS, Difference, TokenizerDiff};
use gguf_tokenizer::{HuggingFace, Tokenizer, TokenizerOptions};

use crate::{Error, open};

/// The differences that are shown.
const SHOWN: usize = 10;

/// About as many bytes of the user's corpus are compared, and shown, at once.
const PART: usize = 512;

/// A finding for each of the first texts that `source` and the file at `other` encode otherwise,
/// and one with the number of all.
pub(super) fn compare(
    source: &str,
    other: &Path,
    corpus: Option<&Path>,
) -> Result<Vec<Finding>, Error> {
    let other = if other.is_dir() { other.join("tokenizer.json") } else { other.to_owned() };
    let in_other = |error: Error| error.in_file(&other);
    let theirs = HuggingFace::from_json(&read(&other)?).map_err(in_other)?;
    let opened = open(source)?;
    let ours = Tokenizer::from_metadata(opened.model().metadata(), TokenizerOptions::default())?;
    let against = TokenizerDiff { ours: &ours, theirs: &theirs };

    let corpus = corpus.map(read).transpose()?.unwrap_or_default();
    let corpus = String::from_utf8_lossy(&corpus);
    let added = against.added_tokens();
    let texts = CORPUS.iter().copied().chain(added.iter().map(String::as_str));
    let mut findings: Vec<Finding> =
        against.bos_eos().map_err(in_other)?.iter().map(finding).collect();
    let (mut texts_len, mut different) = (0, 0);
    for text in texts.chain(parts(&corpus)) {
        texts_len += 1;
        if different >= SHOWN {
            different += usize::from(against.differs(text).map_err(in_other)?);
        } else if let Some(difference) = against.text(text).map_err(in_other)? {
            different += 1;
            // Of texts that differ for the same reason one is enough.
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
                .help("the model sees other tokens than it was trained with; convert it anew"),
        );
    }
    Ok(findings)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|fault| Error::environment("read", path, fault))
}

fn finding(difference: &Difference) -> Finding {
    let Difference { text, ours, theirs, rule } = difference;
    let message = format!("{text:?}: {} here, {} there; {rule}", list(ours), list(theirs));
    Finding::error("tokenizer-difference", message)
}

/// The first ids; the rest only as their number.
fn list(ids: &[u32]) -> String {
    const IDS: usize = 8;
    let first: Vec<_> = ids.iter().take(IDS).map(u32::to_string).collect();
    let more = ids.len().saturating_sub(IDS);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    format!("[{}{more}]", first.join(", "))
}

/// The corpus in runs of whole lines.
fn parts(mut corpus: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let least = corpus.floor_char_boundary(PART);
        let rest = corpus.get(least..)?;
        let end = rest.find('\n').map_or(corpus.len(), |line| least + line + 1);
        let (part, rest) = corpus.split_at(end);
        corpus = rest;
        Some(part).filter(|part| !part.is_empty())
    })
}
