//! BPE merges, best first, each as `left right`.

use gguf::Error;
use serde_json::Value;

use super::bpe;
use super::files::Files;

/// Reads the merges in `tokenizer.json`, or else in `merges.txt`.
pub(super) fn read(files: &Files, notes: &mut Vec<String>) -> Result<Vec<String>, Error> {
    let list = files.tokenizer().and_then(|t| t["model"]["merges"].as_array());
    let mut merges = Vec::with_capacity(list.map_or(0, Vec::len));
    for (rank, merge) in list.into_iter().flatten().enumerate() {
        merges.push(one(merge).ok_or_else(|| {
            Error::input(
                "vocabulary-damaged",
                files.tokenizer_path(),
                format!("merge {rank} is {merge}; expected \"left right\" or a pair"),
                "download the file again",
            )
        })?);
    }
    if merges.is_empty() {
        merges = from_text(files, notes)?;
    }
    if merges.is_empty() {
        notes.push("found no merges: every byte of a text becomes a token".to_owned());
    }
    note_unknown(files, &merges, notes)?;
    Ok(merges)
}

/// Parses a merge. The pair form exists for tokens that contain spaces. GGUF has only the other form, so such a
/// space is written in the byte-level alphabet.
fn one(merge: &Value) -> Option<String> {
    match merge {
        Value::String(text) => Some(text.clone()),
        Value::Array(pair) => {
            let [left, right] = &pair[..] else { return None };
            let [left, right] =
                [left.as_str()?, right.as_str()?].map(|part| part.replace(' ', "\u{120}"));
            Some(format!("{left} {right}"))
        }
        _ => None,
    }
}

fn from_text(files: &Files, notes: &mut Vec<String>) -> Result<Vec<String>, Error> {
    if !files.has("merges.txt") {
        return Ok(vec![]);
    }
    let text = files.text("merges.txt")?;
    let mut merges = vec![];
    for (line, text) in text.lines().map(str::trim).enumerate() {
        // The first line may have the version, after `#`.
        if text.is_empty() || line == 0 && text.starts_with('#') {
            continue;
        }
        let mut parts = text.split_whitespace();
        match (parts.next(), parts.next(), parts.next()) {
            (Some(left), Some(right), None) => merges.push(format!("{left} {right}")),
            _ => notes.push(format!("merges.txt: skipped line {}: {text:?}", line + 1)),
        }
    }
    Ok(merges)
}

/// Notes merges whose parts or result are not tokens: they never apply.
fn note_unknown(files: &Files, merges: &[String], notes: &mut Vec<String>) -> Result<(), Error> {
    let vocab = bpe::model_vocab(files, "BPE")?;
    let unknown = |merge: &&String| {
        merge.split_once(' ').is_none_or(|(left, right)| {
            [left, right, &format!("{left}{right}")].iter().any(|part| !vocab.contains_key(part))
        })
    };
    let mut rest = merges.iter().filter(unknown);
    if let Some(first) = rest.next() {
        notes.push(format!(
            "{} merges name tokens that are missing from the vocabulary; the first is {first:?}",
            1 + rest.count()
        ));
    }
    Ok(())
}
