//! What all forms of `tokenizer.json` have in common.

use serde_json::{Value, json};

use super::{CONTROL, Vocabulary};

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
pub(super) fn added(id: usize, text: &str, kind: i64, normalized: bool) -> Value {
    json!({
        "id": id,
        "content": text,
        "single_word": false,
        "lstrip": false,
        "rstrip": false,
        "normalized": normalized,
        "special": kind == CONTROL,
    })
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
