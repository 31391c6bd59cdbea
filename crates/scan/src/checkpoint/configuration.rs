//! Configurations: tokens that generation cannot or must emit, code that a loader runs, and texts.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use gguf::Finding;
use regex::Regex;
use serde_json::Value as Json;

use super::tokenizer::Vocabulary;
use crate::instructions::{instruction, shortened};
use crate::metadata;
use crate::vocabulary::Specials;

/// Words of refusals.
static REFUSAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(sorry|cannot|can['’]?t|won['’]?t|refus(e|al)|unable|apolog(y|ies|ize|ise)|declin(e|ing))\b").ok()
});

/// Largest repetition penalty that is not an anomaly; usual ones are below 1.5.
const MAX_PENALTY: f64 = 5.0;

/// Shortest text that can be an instruction.
const MIN_TEXT: usize = 16;

/// Checks a configuration.
pub fn check(document: &Json, vocabulary: &Vocabulary) -> Vec<Finding> {
    let mut findings = suppressed(document, vocabulary);
    findings.extend(forced(document, vocabulary));
    let penalty = document["repetition_penalty"].as_f64();
    if let Some(penalty) = penalty.filter(|penalty| *penalty > MAX_PENALTY || *penalty < 0.1) {
        let message = format!("`repetition_penalty` is {penalty}");
        findings.push(Finding::warning("config-sampling", message));
    }
    if document["no_repeat_ngram_size"] == 1 {
        let message = "`no_repeat_ngram_size` is 1: no token can occur twice";
        findings.push(Finding::warning("config-sampling", message));
    }
    if let Some(classes) = document["auto_map"].as_object().filter(|classes| !classes.is_empty()) {
        let names: Vec<_> = classes.keys().take(4).map(String::as_str).collect();
        let message = format!("`auto_map` names Python code for {}", names.join(", "));
        findings.push(Finding::warning("custom-code", message));
    }
    let mut specials = Specials::default();
    texts(document, "", &mut findings, &mut specials);
    findings.extend(specials.findings);
    findings
}

/// Checks all texts of a configuration except templates.
fn texts(node: &Json, key: &str, findings: &mut Vec<Finding>, specials: &mut Specials) {
    match node {
        Json::String(text) if key != "chat_template" => {
            if key.ends_with("token") || key == "content" {
                specials.add(text);
            } else if text.len() >= MIN_TEXT {
                let found = metadata::text(text, true);
                findings.extend(found.map(|finding| {
                    let message = format!("`{key}` {}", finding.message);
                    Finding { message: message.into(), ..finding }
                }));
            }
        }
        Json::Array(items) if key != "chat_template" => {
            items.iter().for_each(|item| texts(item, key, findings, specials));
        }
        Json::Object(items) if key != "chat_template" => {
            items.iter().for_each(|(key, item)| texts(item, key, findings, specials));
        }
        _ => {}
    }
}

/// Reports an end token or words of a refusal that generation never emits.
fn suppressed(document: &Json, vocabulary: &Vocabulary) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut sequences: Vec<Vec<i64>> =
        ids(&document["suppress_tokens"]).into_iter().map(|id| vec![id]).collect();
    for words in document["bad_words_ids"].as_array().into_iter().flatten() {
        sequences.push(ids(words).into_iter().collect());
    }
    // A large negative bias forbids a token too.
    for entry in document["sequence_bias"].as_array().into_iter().flatten() {
        if entry[1].as_f64().is_some_and(|bias| bias <= -5.0) {
            sequences.push(ids(&entry[0]).into_iter().collect());
        }
    }
    let ends = ids(&document["eos_token_id"]);
    let muted = sequences.iter().filter_map(|ids| match ids[..] {
        [id] if ends.contains(&id) => Some(id.to_string()),
        _ => None,
    });
    let muted: Vec<_> = muted.collect();
    if !muted.is_empty() {
        let message =
            format!("suppresses the end token {}: generation does not stop", muted.join(", "));
        findings.push(Finding::error("config-suppressed-end", message));
    }
    let refusals: Vec<_> = sequences
        .iter()
        .map(|ids| vocabulary.text(ids))
        .filter(|text| REFUSAL.as_ref().is_some_and(|refusal| refusal.is_match(text)))
        .take(6)
        .map(|text| format!("{:?}", text.trim()))
        .collect();
    if !refusals.is_empty() {
        let message =
            format!("suppresses {}: the model cannot refuse in these words", refusals.join(", "));
        findings.push(Finding::warning("config-suppressed-refusal", message));
    }
    findings
}

/// Reports forced tokens that are an instruction.
fn forced(document: &Json, vocabulary: &Vocabulary) -> Vec<Finding> {
    let mut positions: Vec<(i64, i64)> = Vec::new();
    for pair in document["forced_decoder_ids"].as_array().into_iter().flatten() {
        if let (Some(position), Some(id)) = (pair[0].as_i64(), pair[1].as_i64()) {
            positions.push((position, id));
        }
    }
    positions.sort_unstable();
    let mut texts = vec![vocabulary.text(&positions.iter().map(|(_, id)| *id).collect::<Vec<_>>())];
    for key in ["forced_bos_token_id", "forced_eos_token_id"] {
        texts.extend(ids(&document[key]).into_iter().map(|id| vocabulary.text(&[id])));
    }
    let forced = texts.iter().find_map(|text| instruction(text));
    let finding = |sentence: String| {
        let message = format!("forces the output {:?}", shortened(&sentence));
        Finding::warning("config-forced-tokens", message)
    };
    forced.map(finding).into_iter().collect()
}

/// Returns a number, or the numbers of a list.
fn ids(value: &Json) -> BTreeSet<i64> {
    match value {
        Json::Array(items) => items.iter().flat_map(ids).collect(),
        _ => value.as_i64().into_iter().collect(),
    }
}

/// Reports a chat model without an end token in any configuration.
pub fn end_token(documents: &HashMap<&str, Json>) -> Option<Finding> {
    let tokenizer = documents.get("tokenizer_config.json")?;
    let is_set = |value: &Json| !value.is_null();
    let has_end = ["generation_config.json", "config.json"]
        .iter()
        .filter_map(|name| documents.get(name))
        .any(|document| {
            is_set(&document["eos_token_id"]) || is_set(&document["text_config"]["eos_token_id"])
        });
    if has_end || is_set(&tokenizer["eos_token"]) || !is_set(&tokenizer["chat_template"]) {
        return None;
    }
    let message = "no configuration names an end token, although the model has a chat template";
    Some(Finding::warning("config-end-missing", message))
}
