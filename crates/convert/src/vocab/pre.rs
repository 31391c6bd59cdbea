//! Recognition of `tokenizer.ggml.pre` by the structure of the pre-tokenizer in `tokenizer.json`.
//!
//! The tree in the file is flattened to normalized steps, which are looked up in [`super::pre_table`]. Fine-tunes with
//! additional tokens and unknown vocabularies are thus recognized if they split text as a known model does.

use std::borrow::Cow;
use std::path::Path;

use gguf::Error;
use gguf::suggest::distance;
use gguf_models::pre_tokenizer::{GPT2, aliases};
use serde_json::Value;

use super::pre_table::{Known, TABLE};
use super::step::Step;

/// Returns the name that the user chose, with a note if no runtime knows it.
pub(super) fn requested(name: &str, notes: &mut Vec<String>) -> String {
    if aliases(name).is_empty() {
        notes.push(format!("tokenizer.ggml.pre is {name:?}, which llama.cpp does not know"));
    }
    name.to_owned()
}

/// Returns the name for `tokenizer`, the content of the file at `path`.
///
/// Among names with the same structure, those in `hints` are preferred, then those with the same `ignore_merges`,
/// then the first in the table.
///
/// # Errors
/// If the structure is unknown. The error has its steps and the nearest known name.
pub(super) fn recognize(
    tokenizer: &Value,
    hints: &[&str],
    path: &Path,
    notes: &mut Vec<String>,
) -> Result<String, Error> {
    let (steps, matching) = rows(tokenizer, notes);
    if matching.is_empty() {
        return Err(unknown(&steps, path));
    }
    let ignore_merges = tokenizer["model"]["ignore_merges"].as_bool().unwrap_or(false);
    let names = matching.iter().flat_map(|row| row.names().iter().map(move |name| (*row, *name)));
    let rank = |&(row, name): &(&Known, &str)| {
        let hint = hints.iter().position(|hint| *hint == name);
        (hint.is_none(), row.ignore_merges != ignore_merges, hint)
    };
    // Returns the first of equal ones, in the order of the table.
    let Some((row, name)) = names.min_by_key(rank) else { return Err(unknown(&steps, path)) };
    if row.ignore_merges != ignore_merges {
        notes.push(format!(
            "`ignore_merges` is {ignore_merges} in tokenizer.json, but {} for the nearest name, {name:?}",
            row.ignore_merges
        ));
    }
    if !hints.contains(&name) {
        note_choice(row, name, &matching, notes);
    }
    Ok(name.to_owned())
}

/// Returns the name of another pre-tokenizer that splits text as `tokenizer`, the content of a `tokenizer.json`, does; `None`
/// if `name` does, or none is known.
pub fn other_pre_tokenizer(tokenizer: &Value, name: &str) -> Option<String> {
    let found = recognize(tokenizer, aliases(name), Path::new(""), &mut Vec::new()).ok()?;
    (!aliases(name).contains(&&*found)).then_some(found)
}

/// Returns whether a name has the structure of `tokenizer`.
pub(super) fn is_known(tokenizer: &Value) -> bool {
    !rows(tokenizer, &mut Vec::new()).1.is_empty()
}

/// Returns the steps of `tokenizer`, and the rows of the table with these steps. Normalizers that no row has are
/// omitted, with a note.
fn rows<'a>(tokenizer: &'a Value, notes: &mut Vec<String>) -> (Vec<Step<'a>>, Vec<&'static Known>) {
    let all = steps(tokenizer, notes);
    let matching =
        |steps: &[Step]| -> Vec<&Known> { TABLE.iter().filter(|row| row.steps == steps).collect() };
    let rows = matching(&all);
    let mut normalizers = vec![];
    normalizer(&tokenizer["normalizer"], &mut normalizers, &mut vec![]);
    let (Some(split), true) = (all.strip_prefix(&normalizers[..]), rows.is_empty()) else {
        return (all, rows);
    };
    let rows = matching(split);
    if !rows.is_empty() {
        notes.push(format!(
            "tokenizer.json normalizes text by {}, but runtimes do not for this kind of vocabulary",
            text(&normalizers)
        ));
    }
    (all, rows)
}

/// Notes the other names of the same structure.
fn note_choice(row: &Known, name: &str, matching: &[&Known], notes: &mut Vec<String>) {
    let list =
        |names: &mut dyn Iterator<Item = &&str>| names.copied().collect::<Vec<_>>().join(", ");
    let alike = list(&mut row.names().iter().filter(|other| **other != name));
    let others = matching.iter().filter(|other| !std::ptr::eq(**other, row));
    let others = list(&mut others.flat_map(|other| other.names()));
    let mut note = format!("tokenizer.ggml.pre is {name:?}, recognized by structure");
    if !alike.is_empty() {
        note += &format!("; names that runtimes treat the same: {alike}");
    }
    if !others.is_empty() {
        note += &format!("; names with the same splits and other defaults: {others}");
    }
    notes.push(note);
}

fn unknown(found: &[Step], path: &Path) -> Error {
    // The text comes from a file and can have any length.
    const COMPARED: usize = 4096;
    let found_text = text(found);
    let compared = &found_text[..found_text.floor_char_boundary(COMPARED)];
    let unlike = |row: &&Known| distance(&text(row.steps), compared, usize::MAX);
    let nearest = TABLE.iter().min_by_key(unlike).map_or("", |row| row.name);
    Error::input(
        "pre-tokenizer-unknown",
        path,
        format!("unknown pre-tokenizer: {found_text}"),
        format!(
            "the nearest known pre-tokenizer is {nearest:?}; convert with --pre {nearest} if the \
             difference does not matter for your texts"
        ),
    )
}

fn text(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "none".to_owned();
    }
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the steps of normalizer and pre-tokenizer in a `tokenizer.json`.
fn steps<'a>(tokenizer: &'a Value, notes: &mut Vec<String>) -> Vec<Step<'a>> {
    let mut steps = vec![];
    normalizer(&tokenizer["normalizer"], &mut steps, notes);
    let pre_tokenizer = &tokenizer["pre_tokenizer"];
    // A single `ByteLevel` adds the space to the text. Behind other pre-tokenizers it adds one to every piece.
    if pre_tokenizer["type"] == "ByteLevel" && pre_tokenizer["add_prefix_space"] == true {
        byte_level(pre_tokenizer, &mut steps);
        notes.push(
            "tokenizer.json adds a space in front of every text, but runtimes do not for this kind of \
             vocabulary"
                .to_owned(),
        );
        return steps;
    }
    pre_tokenizers(pre_tokenizer, &mut steps);
    steps
}

fn normalizer<'a>(part: &'a Value, steps: &mut Vec<Step<'a>>, notes: &mut Vec<String>) {
    match part["type"].as_str() {
        None => {}
        Some("Sequence") => {
            for part in part["normalizers"].as_array().into_iter().flatten() {
                normalizer(part, steps, notes);
            }
        }
        Some(kind @ ("Lowercase" | "StripAccents" | "BertNormalizer")) => notes.push(format!(
            "tokenizer.json normalizes text by {kind}, but runtimes do not for this kind of vocabulary"
        )),
        Some(form @ ("NFC" | "NFD" | "NFKC" | "NFKD")) => notes.push(format!(
            "tokenizer.json normalizes text to {form}, but llama.cpp does not: text with combining marks \
             may have other tokens"
        )),
        Some("Replace") => steps.push(match (pattern(part), part["content"].as_str()) {
            (Some(from), Some(to)) => Step::Replace { from: from.into(), to: to.into() },
            _ => other(part),
        }),
        Some(_) => steps.push(other(part)),
    }
}

fn pre_tokenizers<'a>(part: &'a Value, steps: &mut Vec<Step<'a>>) {
    let behavior = || Cow::Borrowed(part["behavior"].as_str().unwrap_or("Isolated"));
    let isolated =
        |regex: &'static str| Step::Split { regex: regex.into(), behavior: "Isolated".into() };
    match part["type"].as_str() {
        None => {}
        Some("Sequence") => {
            for part in part["pretokenizers"].as_array().into_iter().flatten() {
                pre_tokenizers(part, steps);
            }
        }
        Some("Split") => steps.push(split(part)),
        // Matches the Unicode category of numbers.
        Some("Digits") if part["individual_digits"] == true => steps.push(isolated(r"\p{N}")),
        Some("Digits") => steps.push(isolated(r"\p{N}+")),
        Some("Punctuation") => steps.push(Step::Punctuation { behavior: behavior() }),
        Some("ByteLevel") if part["add_prefix_space"] != true => byte_level(part, steps),
        Some(_) => steps.push(other(part)),
    }
}

fn byte_level<'a>(part: &'a Value, steps: &mut Vec<Step<'a>>) {
    if part["use_regex"] != false {
        steps.push(Step::Split { regex: GPT2.into(), behavior: "Isolated".into() });
    }
    steps.push(Step::Bytes);
}

fn split(part: &Value) -> Step<'_> {
    let (Some(regex), Some(behavior)) = (pattern(part), part["behavior"].as_str()) else {
        return other(part);
    };
    let regex = canonical_regex(regex);
    match (behavior, part["invert"] == true) {
        (_, false) => Step::Split { regex, behavior: behavior.into() },
        // Keeping only the matches is the same as splitting around them if the matches cover every text: the regex
        // ends with whitespace and has a branch for characters that are neither whitespace, letter nor digit.
        ("Removed", true) if regex.ends_with(r"|\s+") && regex.contains(r"| ?[^\s\p{L}\p{") => {
            Step::Split { regex, behavior: "Isolated".into() }
        }
        _ => other(part),
    }
}

/// Returns the regex or string that a part matches.
fn pattern(part: &Value) -> Option<&str> {
    part["pattern"]["Regex"].as_str().or_else(|| part["pattern"]["String"].as_str())
}

/// Normalizes the spelling of equivalent regexes.
fn canonical_regex(regex: &str) -> Cow<'_, str> {
    const SAME: [(&str, &str); 4] = [
        ("\r", r"\r"),
        ("\n", r"\n"),
        ("\t", r"\t"),
        (
            "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
            "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        ),
    ];
    let mut regex = Cow::Borrowed(regex);
    for (spelling, canonical) in SAME {
        if regex.contains(spelling) {
            regex = regex.replace(spelling, canonical).into();
        }
    }
    regex
}

fn other(part: &Value) -> Step<'_> {
    Step::Other(part.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_canonical_regexes_and_known_names() {
        for row in TABLE {
            assert_eq!(row.names().first(), Some(&row.name));
            for step in row.steps {
                if let Step::Split { regex, .. } = step {
                    assert_eq!(canonical_regex(regex), *regex, "{}", row.name);
                }
            }
        }
    }
}
