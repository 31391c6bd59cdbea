//! Vocabularies in `tokenizer.json` that map texts to ids: byte-level BPE and WordPiece.

use std::collections::{HashMap, HashSet};

use gguf::Error;
use gguf_models::token::{TokenType, byte_of, char_of};
use serde_json::Value;

use super::files::{AddedToken, Files, special_token_text};
use super::token::{MAX_TOKENS, Token};

/// Returns the trained tokens of `tokenizer.json` with their ids.
///
/// # Errors
/// If the type of its model is not `model_type`.
pub(super) fn model_vocab<'f>(
    files: &'f Files,
    model_type: &str,
) -> Result<HashMap<&'f str, u64>, Error> {
    let fault = |what: String| {
        Error::input("vocabulary-damaged", files.tokenizer_path(), what, "download the file again")
    };
    let model = &files.require_tokenizer()?["model"];
    // Old files lack the type.
    if model["type"].as_str().is_some_and(|found| found != model_type) {
        return Err(Error::input(
            "vocabulary-other-model",
            files.tokenizer_path(),
            format!("`model.type` is {}; expected {model_type}", model["type"]),
            "check that the tokenizer belongs to this model",
        ));
    }
    let vocab = model["vocab"].as_object().ok_or_else(|| fault("model.vocab is missing".into()))?;
    vocab
        .iter()
        .map(|(text, id)| {
            let id = id.as_u64().ok_or_else(|| fault(format!("the id of {text:?} is {id}")))?;
            Ok((&**text, id))
        })
        .collect()
}

/// Returns the id of the unknown token that the model of `tokenizer.json` names.
pub(super) fn unknown_id(files: &Files) -> Option<u32> {
    let model = &files.tokenizer()?["model"];
    let id = model["vocab"].get(model["unk_token"].as_str()?)?.as_u64()?;
    u32::try_from(id).ok()
}

/// Returns the added tokens with their ids: those of `tokenizer.json`, then those that only
/// `tokenizer_config.json` has, in the order in which `transformers` adds them.
pub(super) fn added_tokens(
    files: &Files,
    model: &HashMap<&str, u64>,
) -> Result<Vec<(u64, AddedToken)>, Error> {
    let mut added: Vec<(u64, AddedToken)> = vec![];
    for entry in files.added_tokens() {
        let token = AddedToken::parse(entry).and_then(|token| {
            let trained = model.get(&*token.content).copied();
            Some((trained.or(entry["id"].as_u64())?, token))
        });
        added.push(token.ok_or_else(|| {
            Error::input(
                "vocabulary-damaged",
                files.tokenizer_path(),
                format!("the added token {entry} has no `id` or no `content`"),
                "download the file again",
            )
        })?);
    }
    let mut contents: HashSet<String> =
        added.iter().map(|(_, token)| token.content.clone()).collect();
    let after = added.iter().map(|(id, _)| id.saturating_add(1)).max().unwrap_or(0);
    let mut next = after.max(model.len() as u64);
    let described = files.added_tokens_decoder()?.into_iter().map(|(_, token)| token);
    for token in described.chain(named_special_tokens(files)) {
        if !contents.insert(token.content.clone()) {
            continue;
        }
        let id = model.get(&*token.content).copied().unwrap_or_else(|| {
            next = next.saturating_add(1);
            next - 1
        });
        added.push((id, token));
    }
    Ok(added)
}

/// Returns the special tokens that `tokenizer_config.json` names by role.
fn named_special_tokens(files: &Files) -> impl Iterator<Item = AddedToken> {
    let text = |role: &str| {
        let value = files.tokenizer_config()?.get(&format!("{role}_token"))?;
        special_token_text(value).filter(|text| !text.is_empty())
    };
    super::roles::ROLES.into_iter().filter_map(text).map(|content| AddedToken {
        content: content.to_owned(),
        special: true,
        normalized: false,
    })
}

/// Returns all tokens by id, padded to `vocab_size`.
///
/// # Errors
/// If the type of the model is not `model_type`, or an id is not below `vocab_size`.
pub(super) fn tokens(
    files: &Files,
    model_type: &str,
    vocab_size: Option<u64>,
    notes: &mut Vec<String>,
) -> Result<Vec<Token>, Error> {
    let model = model_vocab(files, model_type)?;
    let added = added_tokens(files, &model)?;
    let known =
        model.len() + added.iter().filter(|(_, t)| !model.contains_key(&*t.content)).count();
    let rows = vocab_size.unwrap_or(known as u64);
    let last = model.values().chain(added.iter().map(|(id, _)| id)).max();
    if let Some(last) = last.filter(|&&last| last >= rows) {
        return Err(Error::input(
            "vocabulary-other-model",
            files.tokenizer_path(),
            format!("token id {last} does not fit a vocabulary of {rows}"),
            "check that the tokenizer is this model's, and `vocab_size` in config.json",
        ));
    }
    if rows > MAX_TOKENS {
        return Err(Error::input(
            "config-field",
            &files.path("config.json"),
            format!("vocab_size is {rows}"),
            "correct it to the number of rows of the embedding",
        ));
    }

    let mut slots: Vec<Option<Token>> = vec![None; rows as usize]; // at most `MAX_TOKENS`
    let mut shared = 0;
    let mut trained: Vec<(&str, u64)> = model.into_iter().collect();
    trained.sort_unstable(); // makes the text of a shared id independent of the hash map
    for (text, id) in trained {
        let slot = &mut slots[id as usize]; // every id is below `rows`
        shared += usize::from(slot.is_some());
        *slot = Some(Token { text: text.to_owned(), score: 0.0, kind: TokenType::Normal });
    }
    let byte_level = decodes_bytes(&files.require_tokenizer()?["decoder"]);
    for (id, token) in added {
        let slot = &mut slots[id as usize];
        shared += usize::from(slot.as_ref().is_some_and(|old| old.text != token.content));
        // Added tokens are plain text, not in the byte-level alphabet, but llama.cpp's converter decodes those that
        // are matched in raw text.
        let text = match token.normalized || !byte_level {
            true => token.content,
            false => decode_bytes(&token.content),
        };
        *slot = Some(Token::added(text, token.special));
    }
    if shared > 0 {
        notes.push(format!("skipped {shared} tokens whose id another token has"));
    }
    let filled =
        |(id, token): (usize, Option<Token>)| token.unwrap_or_else(|| Token::padding(id, 0.0));
    Ok(slots.into_iter().enumerate().map(filled).collect())
}

/// Returns whether the decoder maps the byte-level alphabet to bytes.
fn decodes_bytes(decoder: &Value) -> bool {
    decoder["type"] == "ByteLevel"
        || decoder["decoders"].as_array().is_some_and(|all| all.iter().any(decodes_bytes))
}

/// Decodes text in the byte-level alphabet. Returns other text unchanged.
pub(crate) fn decode_bytes(text: &str) -> String {
    match text.chars().map(byte_of).collect::<Option<Vec<u8>>>() {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => text.to_owned(),
    }
}

/// Encodes bytes in the byte-level alphabet.
pub fn spell(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char_of(byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_text_is_decoded() {
        assert_eq!(decode_bytes("<|a\u{120}b|>"), "<|a b|>");
        assert_eq!(decode_bytes("a b"), "a b");
        assert_eq!(spell(b"a\n\xad"), "a\u{10A}\u{143}");
    }
}
