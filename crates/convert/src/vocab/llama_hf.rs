//! SentencePiece BPE vocabularies in `tokenizer.json`.
//!
//! The file has no scores. All tokens get the same score, as in llama.cpp's converter, so that runtimes merge in the
//! order of ids.

use std::collections::{HashMap, HashSet};

use gguf::Error;
use gguf_models::token::{TokenType, byte_of_token};
use serde_json::Value;

use super::bpe;
use super::files::Files;
use super::special::named_special_tokens;
use super::token::{ADDED_SCORE, Token};

/// Returns whether the model in a `tokenizer.json` is BPE with byte fallback.
pub(super) fn is_sentencepiece_style(tokenizer: &Value) -> bool {
    let model = &tokenizer["model"];
    model["type"] == "BPE"
        && model["byte_fallback"] == true
        && tokenizer["decoder"]["type"] == "Sequence"
}

/// Returns the tokens in the order of their ids, added tokens behind the model's.
///
/// # Errors
/// If an id below the number of the model's tokens has no token.
pub(super) fn tokens(files: &Files) -> Result<Vec<Token>, Error> {
    let model = bpe::model_vocab(files, "BPE")?;
    let added = bpe::added_tokens(files, &model)?;
    let named = named_special_tokens(files)?;
    let base = model.len() as u64;

    let mut texts: HashMap<u64, &str> = model.iter().map(|(&text, &id)| (id, text)).collect();
    texts.extend(added.iter().map(|(id, token)| (*id, &*token.content)));
    let ids: HashMap<&str, u64> = texts.iter().map(|(&id, &text)| (text, id)).collect();
    let special_ids: HashSet<u64> =
        named.iter().filter_map(|text| ids.get(&**text).copied()).collect();

    let mut tokens = Vec::with_capacity(texts.len());
    for id in 0..base {
        let text = texts.get(&id).ok_or_else(|| {
            Error::input(
                "vocabulary-damaged",
                &files.path("tokenizer.json"),
                format!("no token has the id {id}, but the model has {base} tokens"),
                "add tokenizer.model",
            )
        })?;
        let kind = match special_ids.contains(&id) {
            _ if byte_of_token(text.as_bytes()).is_some() => TokenType::Byte,
            true => TokenType::Control,
            false => TokenType::Normal,
        };
        tokens.push(Token { text: (*text).to_owned(), score: ADDED_SCORE, kind });
    }
    let mut behind: Vec<_> = added.iter().filter(|(id, _)| *id >= base).collect();
    behind.sort_by_key(|(id, _)| *id);
    tokens.extend(behind.into_iter().map(|(id, token)| {
        let special = special_ids.contains(id);
        let kind = if special { TokenType::Control } else { TokenType::UserDefined };
        Token { text: token.content.clone(), score: ADDED_SCORE, kind }
    }));
    Ok(tokens)
}
