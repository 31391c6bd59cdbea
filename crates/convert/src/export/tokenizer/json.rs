//! Fields that every `tokenizer.json` has, for BPE, Unigram and WordPiece alike.

use std::collections::HashSet;

use gguf_models::convert::VocabularyKind;
use gguf_models::token::TokenType;
use serde_json::{Map, Value, json};

use super::{Token, Vocabulary, is_padding};
use crate::vocab::XVERSE_ZERO;

/// The file with a model, and without anything around it.
pub(super) fn file(model: Value) -> Value {
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": null,
        "post_processor": null,
        "decoder": null,
        "model": model,
    })
}

/// An entry of `added_tokens`.
pub(super) fn added(
    vocabulary: &Vocabulary,
    id: usize,
    text: &str,
    kind: TokenType,
    normalized: bool,
) -> Value {
    // Flags that a GGUF has no key for, and all models of a kind have: runtimes know them too.
    let takes_left = match vocabulary.kind {
        VocabularyKind::Encoder => text == "<mask>",
        _ => false,
    };
    let takes_right = match vocabulary.kind {
        VocabularyKind::Phi3 if !vocabulary.is_byte_level() => {
            !matches!(text, "<unk>" | "<s>" | "<|endoftext|>")
        }
        _ => false,
    };
    json!({
        "id": id,
        "content": text,
        "single_word": false,
        "lstrip": takes_left,
        "rstrip": takes_right,
        "normalized": normalized,
        "special": kind == TokenType::Control,
    })
}

/// A token as other files have it: Gemma's list runs of spaces as its model has them.
pub(super) fn spelled(vocabulary: &Vocabulary, token: &Token) -> String {
    let is_gemma = matches!(vocabulary.kind, VocabularyKind::Gemma { .. });
    let is_spaces = token.kind == TokenType::UserDefined && token.text.chars().all(|c| c == ' ');
    let is_zero = vocabulary.kind == VocabularyKind::Xverse && token.text == XVERSE_ZERO;
    match is_gemma && is_spaces {
        _ if is_zero => "\0".to_owned(),
        true => token.text.replace(' ', "\u{2581}"),
        false => token.text.to_owned(),
    }
}

/// Lower case and accents, as far as the keys tell.
pub(super) fn case(vocabulary: &Vocabulary) -> Option<Value> {
    let flag = |name: &str| vocabulary.metadata.bool(&format!("tokenizer.ggml.normalizer.{name}"));
    Some(match (flag("lowercase"), flag("strip_accents")) {
        (None, None) => return None,
        (Some(true), None) => json!({ "type": "Lowercase" }),
        (None, Some(true)) => json!({ "type": "StripAccents" }),
        (lowercase, strip_accents) => bert(lowercase.unwrap_or(false), strip_accents, false),
    })
}

/// BERT's, whose other parts are on or off together.
pub(super) fn bert(lowercase: bool, strip_accents: Option<bool>, all: bool) -> Value {
    json!({
        "type": "BertNormalizer", "clean_text": all, "handle_chinese_chars": all,
        "strip_accents": strip_accents, "lowercase": lowercase,
    })
}

/// Parts one after the other: none, one, or a list with this name.
pub(super) fn sequence(list: &str, mut parts: Vec<Value>) -> Value {
    match parts.len() {
        0 => Value::Null,
        1 => parts.remove(0),
        _ => json!({ "type": "Sequence", list: parts }),
    }
}

/// The trained tokens, those up to `reach`, which the model names elsewhere, and those added ones
/// whose ids do not follow by themselves: loaders number tokens that are only added from the number
/// of the others on.
pub(super) fn vocab(tokens: &[Token], reach: usize) -> Map<String, Value> {
    let is_added =
        |token: &Token| matches!(token.kind, TokenType::Control | TokenType::UserDefined);
    let has_gaps = tokens.iter().enumerate().any(|(id, token)| is_padding(id, token));
    let last = tokens.iter().rposition(|token| !is_added(token)).map_or(0, |last| last + 1);
    let trained = if has_gaps { tokens.len() } else { last.max(reach) };
    let texts: HashSet<&str> =
        tokens.iter().filter(|token| !is_added(token)).map(|token| token.text).collect();
    let listed = tokens.iter().enumerate().take(trained).filter(|(id, token)| {
        let is_taken = is_added(token) && texts.contains(token.text);
        !is_padding(*id, token) && !is_taken
    });
    listed.map(|(id, token)| (token.text.to_owned(), id.into())).collect()
}
