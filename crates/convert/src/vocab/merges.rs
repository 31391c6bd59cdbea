//! BPE merges, best first, each as `left right`.

use gguf::Error;
use serde_json::Value;

use super::bpe;
use super::files::Files;

/// Reads the merges in `tokenizer.json`, or else in `merges.txt`.
///
/// # Errors
/// If a merge is no pair, or names or gives a text that is no token.
pub(super) fn read(files: &Files, notes: &mut Vec<String>) -> Result<Vec<String>, Error> {
    let list = files.tokenizer().and_then(|t| t["model"]["merges"].as_array());
    let mut merges = Vec::with_capacity(list.map_or(0, Vec::len));
    let mut with_spaces = 0;
    for (rank, merge) in list.into_iter().flatten().enumerate() {
        let [left, right] = pair(merge).ok_or_else(|| {
            Error::input(
                "vocabulary-damaged",
                files.tokenizer_path(),
                format!("merge {rank} is {merge}; expected \"left right\" or a pair"),
                "download the file again",
            )
        })?;
        if left.contains(' ') || right.contains(' ') {
            with_spaces += 1;
        } else {
            merges.push(format!("{left} {right}"));
        }
    }
    if with_spaces > 0 {
        notes.push(format!(
            "skipped {with_spaces} merges of tokens with spaces: GGUF separates the tokens of a merge by a space"
        ));
    }
    if merges.is_empty() {
        merges = from_text(files, notes)?;
    }
    if merges.is_empty() {
        notes.push("found no merges: every byte of a text becomes a token".to_owned());
    }
    require_tokens(files, &merges)?;
    Ok(merges)
}

/// Parses a merge. The form of a list exists for tokens that contain spaces.
fn pair(merge: &Value) -> Option<[&str; 2]> {
    match merge {
        Value::String(text) => text.split_once(' ').map(<[&str; 2]>::from),
        Value::Array(pair) => match &pair[..] {
            [left, right] => Some([left.as_str()?, right.as_str()?]),
            _ => None,
        },
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

/// Fails if the parts or the result of a merge are not tokens: runtimes disagree about them, or refuse the file.
fn require_tokens(files: &Files, merges: &[String]) -> Result<(), Error> {
    let vocab = bpe::model_vocab(files, "BPE")?;
    let mut missing = merges.iter().enumerate().filter_map(|(rank, merge)| {
        let (left, right) = merge.split_once(' ')?;
        let text = [left, right, &format!("{left}{right}")]
            .into_iter()
            .find(|part| !vocab.contains_key(part))?
            .to_owned();
        Some((rank, merge, text))
    });
    let Some((rank, merge, text)) = missing.next() else { return Ok(()) };
    let others = match missing.count() {
        0 => String::new(),
        others => format!(" ({others} more merges have such tokens)"),
    };
    Err(Error::input(
        "vocabulary-damaged",
        files.tokenizer_path(),
        format!(
            "merge {rank}, {merge:?}, needs the token {text:?}, which the vocabulary lacks{others}"
        ),
        "check that vocabulary and merges are those of the same model",
    ))
}
