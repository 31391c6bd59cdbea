//! SentencePiece-style BPE vocabularies in `tokenizer.json`: spaces are written as U+2581.
//!
//! The file has merges instead of scores. Runtimes merge the pair with the highest score first, so the negated rank of
//! the first merge that gives a token is its score.

use std::collections::{HashMap, HashSet};

use gguf::Error;
use gguf_models::token::{TokenType, byte_of_token};
use serde_json::Value;

use super::files::{AddedToken, Files};
use super::special::named_special_tokens;
use super::token::{ADDED_SCORE, MAX_TOKENS, Token};
use super::{bpe, merges};

const VISIBLE_SPACE: &str = "\u{2581}";

/// Returns whether the model in a `tokenizer.json` is BPE over characters, with visible spaces or byte fallback.
pub(super) fn is_sentencepiece_style(tokenizer: &Value) -> bool {
    let model = &tokenizer["model"];
    let falls_back = model["byte_fallback"] == true && tokenizer["decoder"]["type"] == "Sequence";
    model["type"] == "BPE" && (falls_back || shows_spaces(tokenizer))
}

/// Returns whether a normalizer or pre-tokenizer writes spaces as U+2581.
fn shows_spaces(tokenizer: &Value) -> bool {
    let replaces = |part: &Value| part["type"] == "Replace" && part["content"] == VISIBLE_SPACE;
    parts(&tokenizer["normalizer"], "normalizers").any(replaces)
        || parts(&tokenizer["pre_tokenizer"], "pretokenizers")
            .any(|part| part["type"] == "Metaspace")
}

/// Returns whether normalizer or pre-tokenizer add a space in front of a text.
pub(super) fn adds_space_prefix(tokenizer: &Value) -> bool {
    let prepends = |part: &Value| part["type"] == "Prepend" && part["prepend"] == VISIBLE_SPACE;
    parts(&tokenizer["normalizer"], "normalizers").any(prepends)
        || parts(&tokenizer["pre_tokenizer"], "pretokenizers").any(|part| {
            part["type"] == "Metaspace"
                && part["prepend_scheme"] != "never"
                && part["add_prefix_space"] != false
        })
}

/// Returns the parts of a sequence, or the part itself.
fn parts<'a>(part: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    let all = part[list].as_array().map_or(std::slice::from_ref(part), Vec::as_slice);
    all.iter()
}

/// Returns the tokens with scores by the merges, padded to `rows`.
///
/// # Errors
/// As [`tokens`] and [`merges::read`].
pub(super) fn scored_tokens(
    files: &Files,
    rows: Option<u64>,
    notes: &mut Vec<String>,
) -> Result<Vec<Token>, Error> {
    let mut tokens = tokens(files)?;
    mark_added(files, &mut tokens);
    let merges = merges::read(files, notes)?;
    score_by_merges(&merges, &mut tokens);
    let rows = rows.unwrap_or(0).min(MAX_TOKENS) as usize; // at most `MAX_TOKENS`
    if rows > 0 && tokens.len() > rows {
        notes.push(format!(
            "tokenizer.json has {} tokens, but the embedding has {rows} rows",
            tokens.len()
        ));
    }
    tokens.extend((tokens.len()..rows).map(|id| Token::padding(id, ADDED_SCORE)));
    Ok(tokens)
}

/// Sets the types of added tokens by their flags.
fn mark_added(files: &Files, tokens: &mut [Token]) {
    for entry in files.added_tokens() {
        let id = entry["id"].as_u64().and_then(|id| usize::try_from(id).ok());
        let slot = id.and_then(|id| tokens.get_mut(id)).filter(|slot| slot.kind != TokenType::Byte);
        if let Some((slot, added)) = slot.zip(AddedToken::parse(entry)) {
            *slot = Token::added(added.content, added.special);
        }
    }
}

/// Sets the scores of tokens that merges give. Tokens of several characters without a merge come last.
fn score_by_merges(merges: &[String], tokens: &mut [Token]) {
    let mut ranks = HashMap::new();
    for (rank, (left, right)) in merges.iter().filter_map(|m| m.split_once(' ')).enumerate() {
        ranks.entry(format!("{left}{right}")).or_insert(rank);
    }
    let last = -(merges.len() as f32);
    for token in tokens {
        // Added runs of spaces are merged like other tokens.
        let rank = ranks.get(&token.text.replace(' ', VISIBLE_SPACE)).map(|rank| -(*rank as f32));
        token.score = match token.kind {
            TokenType::Normal => rank.unwrap_or(last),
            TokenType::UserDefined => rank.unwrap_or(token.score),
            _ => token.score,
        };
    }
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
