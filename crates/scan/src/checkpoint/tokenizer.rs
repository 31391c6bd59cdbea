//! `tokenizer.json`: rules that rewrite words, and special tokens.

use std::collections::HashMap;

use gguf::{Array, Finding, Metadata};
use serde_json::Value as Json;

use crate::instructions::{instruction, shortened};
use crate::vocabulary::{Specials, imitated_mark};

/// Maximum nesting that is searched.
const MAX_DEPTH: usize = 64;

/// Texts of the tokens of a checkpoint.
#[derive(Default)]
pub struct Vocabulary {
    texts: HashMap<i64, String>,
    /// Special tokens, in the form of a file.
    specials: Metadata,
}

impl Vocabulary {
    /// Reads the tokens of a `tokenizer.json`, if there is one.
    pub fn of(document: Option<&Json>) -> Self {
        let mut vocabulary = Self::default();
        let Some(document) = document else { return vocabulary };
        if let Some(tokens) = document["model"]["vocab"].as_object() {
            let tokens = tokens.iter().filter_map(|(text, id)| Some((id.as_i64()?, text.clone())));
            vocabulary.texts.extend(tokens);
        } else if let Some(tokens) = document["model"]["vocab"].as_array() {
            let tokens = tokens
                .iter()
                .zip(0..)
                .filter_map(|(token, id)| Some((id, token[0].as_str()?.to_owned())));
            vocabulary.texts.extend(tokens);
        }
        let mut specials = Vec::new();
        for token in document["added_tokens"].as_array().into_iter().flatten() {
            if let (Some(id), Some(text)) = (token["id"].as_i64(), token["content"].as_str()) {
                vocabulary.texts.insert(id, text.to_owned());
                specials.push(text);
            }
        }
        vocabulary.specials.set("tokenizer.ggml.tokens", Array::from_strings(specials));
        vocabulary
    }

    /// Returns the text of tokens, joined; unknown tokens are left out.
    pub fn text(&self, ids: &[i64]) -> String {
        let text = |id| self.texts.get(id).map(|text| text.replace(['▁', 'Ġ'], " "));
        ids.iter().filter_map(text).collect()
    }

    /// Returns a finding about a mark of a template that looks like a special token, and is none.
    pub fn imitated_mark(&self, template: &str) -> Option<Finding> {
        imitated_mark(&self.specials, template)
    }
}

/// Checks a `tokenizer.json`.
pub fn check(document: &Json) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in ["normalizer", "pre_tokenizer", "post_processor", "decoder"] {
        replacements(&document[part], part, MAX_DEPTH, &mut findings);
    }
    let mut specials = Specials::default();
    for token in document["added_tokens"].as_array().into_iter().flatten() {
        let Some(text) = token["content"].as_str() else { continue };
        specials.add(text);
        if let Some(sentence) = instruction(text) {
            let message = format!("an added token is the instruction {sentence:?}");
            findings.push(Finding::warning("token-instruction", message));
        }
    }
    findings.extend(specials.findings);
    findings
}

/// Reports rules that replace letters: ordinary ones replace spaces and marks of spaces.
fn replacements(node: &Json, part: &str, depth: usize, findings: &mut Vec<Finding>) {
    if depth == 0 {
        return;
    }
    if node["type"] == "Replace" {
        let pattern = &node["pattern"];
        let content = node["content"].as_str().unwrap_or_default();
        let (text, letters) = match (pattern["String"].as_str(), pattern["Regex"].as_str()) {
            (Some(text), _) => (text, text.to_owned()),
            // Classes and flags of a regular expression are no words.
            (_, Some(regex)) => {
                let mut letters = String::new();
                let mut chars = regex.chars();
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => drop(chars.next()),
                        '(' if chars.as_str().starts_with('?') => {
                            chars.next();
                            chars.next();
                        }
                        c => letters.push(c),
                    }
                }
                (regex, letters)
            }
            _ => ("", String::new()),
        };
        let has_word = |text: &str| text.chars().filter(|c| c.is_alphabetic()).count() >= 2;
        if has_word(&letters) || has_word(content) {
            let message =
                format!("the {part} replaces {:?} by {:?}", shortened(text), shortened(content));
            findings.push(Finding::warning("tokenizer-rewrite", message));
        }
    }
    match node {
        Json::Array(items) => {
            items.iter().for_each(|item| replacements(item, part, depth - 1, findings))
        }
        Json::Object(items) => {
            items.values().for_each(|item| replacements(item, part, depth - 1, findings))
        }
        _ => {}
    }
}
