//! Checks of a `tokenizer.json` by the rules of the `tokenizers` library (version 0.23), which is stricter than this
//! crate's reader.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::Value;

/// Token ids by text.
type Ids<'t> = HashMap<&'t str, u64>;

/// Returns the faults of a `tokenizer.json`, the first of each kind.
pub(super) fn faults(tokenizer: &Value) -> Vec<String> {
    let model = &tokenizer["model"];
    let mut faults = Vec::new();
    let ids = match model["type"].as_str() {
        Some("Unigram") => unigram(model, &mut faults),
        _ => vocab(model, &mut faults),
    };
    faults.extend(merges(model, &ids));
    if let Some(unknown) = model["unk_token"].as_str().filter(|text| !ids.contains_key(text)) {
        faults.push(format!("the unknown token {unknown:?} is not in the vocabulary"));
    }
    faults.extend(added(tokenizer, &ids));
    let normalizer = &tokenizer["normalizer"];
    let parts = normalizer["normalizers"].as_array().map(Vec::as_slice);
    let parts = parts.unwrap_or(std::slice::from_ref(normalizer));
    let maps = parts.iter().filter_map(|part| part["precompiled_charsmap"].as_str());
    faults.extend(
        maps.filter(|map| !is_charsmap(map))
            .map(|_| "its precompiled character map is not one of SentencePiece".to_owned()),
    );
    faults
}

/// Checks a vocabulary that maps texts to ids.
fn vocab<'t>(model: &'t Value, faults: &mut Vec<String>) -> Ids<'t> {
    let Some(vocab) = model["vocab"].as_object() else {
        faults.push("it has no vocabulary".to_owned());
        return Ids::new();
    };
    let ids: Ids = vocab.iter().filter_map(|(text, id)| Some((&**text, id.as_u64()?))).collect();
    let mut used = HashSet::new();
    if let Some((text, id)) =
        vocab.iter().find(|(_, id)| id.as_u64().is_none_or(|id| !used.insert(id)))
    {
        faults.push(format!("the id {id} of the token {text:?} is a duplicate or out of range"));
    }
    ids
}

/// Checks a vocabulary with scores, where the index is the id.
fn unigram<'t>(model: &'t Value, faults: &mut Vec<String>) -> Ids<'t> {
    let vocab = model["vocab"].as_array().map(Vec::as_slice).unwrap_or_default();
    let entry = |entry: &'t Value| entry[0].as_str().filter(|_| entry[1].is_number());
    if let Some(id) = vocab.iter().position(|scored| entry(scored).is_none()) {
        faults.push(format!("token {id} has no text or no finite score"));
    }
    if let Some(unknown) = model["unk_id"].as_u64().filter(|&id| id >= vocab.len() as u64) {
        faults.push(format!("the unknown token is {unknown} of {}", vocab.len()));
    }
    vocab.iter().zip(0..).filter_map(|(scored, id)| Some((entry(scored)?, id))).collect()
}

/// Checks that the parts and results of merges are tokens.
fn merges(model: &Value, ids: &Ids) -> Option<String> {
    let broken = |merge: &&Value| {
        let parts = match merge {
            Value::String(text) => text.split(' ').collect(),
            Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let [left, right] = parts[..] else { return true };
        [left, right, &format!("{left}{right}")].iter().any(|text| !ids.contains_key(text))
    };
    let merge = model["merges"].as_array()?.iter().find(broken)?;
    Some(format!("the merge {merge} is not two tokens of the vocabulary that form a third"))
}

/// Checks the ids of added tokens: the library numbers those that the model lacks from the end of its vocabulary.
fn added(tokenizer: &Value, ids: &Ids) -> Option<String> {
    let mut ids = ids.clone();
    let mut next = ids.len() as u64;
    for token in tokenizer["added_tokens"].as_array()? {
        let (text, stated) = (token["content"].as_str().unwrap_or_default(), &token["id"]);
        if text.is_empty() {
            return Some(format!("the added token {stated} has no text"));
        }
        let id = *ids.entry(text).or_insert(next);
        next += u64::from(id == next);
        if stated.as_u64() != Some(id) {
            return Some(format!("the added token {text:?} gets the id {id} instead of {stated}"));
        }
    }
    None
}

/// Returns whether this is a character map: length of a trie, trie of 4-byte units, strings.
fn is_charsmap(base64: &str) -> bool {
    let Ok(map) = BASE64.decode(base64) else { return false };
    let Some((len, rest)) = map.split_first_chunk() else { return false };
    let len = u32::from_le_bytes(*len) as usize / 4 * 4;
    rest.get(len..).is_some_and(|texts| std::str::from_utf8(texts).is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pairs() -> Value {
        json!({
            "added_tokens": [{ "id": 1, "content": "b" }, { "id": 3, "content": "<s>" }],
            "model": { "type": "BPE", "unk_token": "a", "vocab": { "a": 0, "b": 1, "ab": 2 },
                "merges": ["a b"] },
        })
    }

    #[track_caller]
    fn fails(pointer: &str, value: Value, fault: &str) {
        let mut tokenizer = pairs();
        *tokenizer.pointer_mut(pointer).unwrap() = value;
        let faults = faults(&tokenizer);
        assert!(faults.len() == 1 && faults[0].contains(fault), "{faults:?}");
    }

    #[test]
    fn each_rule_is_kept() {
        assert_eq!(faults(&pairs()), [] as [String; 0]);
        fails("/model/merges/0", json!("b a"), "\"b a\"");
        fails("/model/merges/0", json!("a c"), "\"a c\"");
        fails("/model/merges/0", json!(["a"]), "[\"a\"]");
        fails("/model/merges/0", json!("a  b"), "\"a  b\"");
        fails("/model/unk_token", json!("c"), "unknown token \"c\"");
        fails("/model/vocab/ab", json!(0), "the id 0 of the token \"ab\"");
        fails("/added_tokens/1/id", json!(4), "\"<s>\" gets the id 3 instead of 4");
        fails("/added_tokens/1/content", json!(""), "no text");
    }

    #[test]
    fn each_rule_for_scores_is_kept() {
        let model = |unknown: u64, score: f64| {
            let vocab = json!([["a", score]]);
            json!({ "model": { "type": "Unigram", "unk_id": unknown, "vocab": vocab } })
        };
        assert_eq!(faults(&model(0, -1.0)), [] as [String; 0]);
        assert_eq!(faults(&model(1, -1.0)), ["the unknown token is 1 of 1"]);
        assert_eq!(faults(&model(0, f64::NAN)), ["token 0 has no text or no finite score"]);
        let mut mapped = model(0, 0.0);
        for (map, count) in [("AAAAAGEA", 0), ("BAAAAGEA", 1), ("AQID", 1), ("?", 1)] {
            mapped["normalizer"] = json!({ "type": "Precompiled", "precompiled_charsmap": map });
            assert_eq!(faults(&mapped).len(), count, "{map}");
        }
    }
}
