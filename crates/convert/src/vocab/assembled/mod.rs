//! Tokenizer files from before `tokenizer.json`, assembled to a `tokenizer.json`.
//!
//! The tokenizer's class determines the pre-tokenizer and the post-processor, which these files lack.

mod byte_level;
mod tiktoken;
mod word_piece;

use std::collections::HashSet;
use std::path::PathBuf;

use gguf::Error;
use serde_json::{Map, Value, json};

use super::files::{AddedToken, Files};
use super::special::named_special_tokens;

/// Tokenizer in the form of `tokenizer.json`.
struct Assembled {
    pub tokenizer: Value,
    /// File of the vocabulary.
    pub path: PathBuf,
    /// Whether the files determine the pre-tokenizer.
    pub has_pre_tokenizer: bool,
    /// Roles of special tokens that the files lack: field of `tokenizer_config.json`, and text.
    pub roles: Vec<(&'static str, &'static str)>,
}

/// Assembles a `tokenizer.json` from older files if there is none.
pub(super) fn assemble(files: &mut Files, notes: &mut Vec<String>) -> Result<(), Error> {
    if files.tokenizer().is_none()
        && let Some(Assembled { tokenizer, path, has_pre_tokenizer, roles }) = read(files, notes)?
    {
        files.set_tokenizer(tokenizer, path, has_pre_tokenizer, roles);
    }
    Ok(())
}

/// Reads the tokenizer of older files, if there are any.
fn read(files: &Files, notes: &mut Vec<String>) -> Result<Option<Assembled>, Error> {
    if let Some(vocab) = files.object("vocab.json")? {
        return byte_level::assemble(files, vocab).map(Some);
    }
    if files.has(word_piece::FILE) {
        return word_piece::assemble(files).map(Some);
    }
    match tiktoken::find(files)? {
        Some(name) => tiktoken::assemble(files, &name, notes).map(Some),
        None => Ok(None),
    }
}

/// Returns the tokenizer's class without the suffix of fast tokenizers.
fn class<'f>(files: &'f Files) -> &'f str {
    let class = files.tokenizer_config().and_then(|c| c.get("tokenizer_class")?.as_str());
    let class = class.unwrap_or_default();
    class.strip_suffix("Fast").unwrap_or(class)
}

/// Returns the entries of `added_tokens`: those that the JSON files list or name by role, and the class's default
/// tokens that the vocabulary has.
fn added_tokens(
    files: &Files,
    vocab: &Map<String, Value>,
    usual: &[&str],
) -> Result<Vec<Value>, Error> {
    let mut named = named_special_tokens(files)?;
    let known = |text: &&&str| vocab.contains_key(**text);
    named.extend(usual.iter().filter(known).map(|text| (*text).to_owned()));

    let mut added = files.added_tokens_decoder()?;
    for (text, id) in files.object("added_tokens.json")?.iter().flatten() {
        let id = id.as_u64().ok_or_else(|| {
            let what = format!("the id of {text:?} is {id}");
            Error::input(
                "vocabulary-damaged",
                &files.path("added_tokens.json"),
                what,
                "correct the entry",
            )
        })?;
        let special = named.contains(text);
        added.push((id, AddedToken { content: text.clone(), special, normalized: !special }));
    }
    let after = added.iter().map(|(id, _)| id.saturating_add(1)).max().unwrap_or(0);
    let mut next = after.max(vocab.len() as u64);
    for text in named.into_iter().filter(|text| !text.is_empty()) {
        let known = vocab.get(&text).and_then(Value::as_u64);
        let listed = added.iter().any(|(_, token)| token.content == text);
        let id = known.unwrap_or(next);
        next += u64::from(known.is_none() && !listed);
        added.push((id, AddedToken { content: text, special: true, normalized: false }));
    }

    // The first entry of a token has the most information.
    let mut seen = HashSet::new();
    added.retain(|(_, token)| seen.insert(token.content.clone()));
    added.sort_by_key(|(id, _)| *id);
    let entry = |(id, token): (u64, AddedToken)| {
        json!({ "id": id, "content": token.content, "special": token.special,
            "normalized": token.normalized })
    };
    Ok(added.into_iter().map(entry).collect())
}

/// Returns a post-processor that adds `first` in front of a text, and `last` behind it and behind a second text.
fn template(first: &[&str], last: &str) -> Value {
    let special = |text: &&str| json!({ "SpecialToken": { "id": text, "type_id": 0 } });
    let text = |id: &str| json!({ "Sequence": { "id": id, "type_id": 0 } });
    let single: Vec<Value> = first.iter().map(special).chain([text("A"), special(&last)]).collect();
    let pair: Vec<Value> = single.iter().cloned().chain([text("B"), special(&last)]).collect();
    json!({ "type": "TemplateProcessing", "single": single, "pair": pair })
}
