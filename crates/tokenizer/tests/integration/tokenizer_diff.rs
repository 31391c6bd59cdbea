//! Tokenizer differences and the rule that causes them.

#![cfg(feature = "huggingface")]

use gguf::{Array, Metadata};
use gguf_tokenizer::diff::{CORPUS, Rule, TokenizerDiff};
use gguf_tokenizer::{HuggingFace, Tokenizer, TokenizerOptions};
use serde_json::{Value as Json, json};

const TOKENS: [&str; 7] = ["[UNK]", "[CLS]", "[SEP]", "\u{2581}a", "b", "\u{2581}.", "\u{2581}ab"];

fn ours() -> Tokenizer {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "bert");
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(TOKENS));
    metadata.set("tokenizer.ggml.token_type", Array::from(&[2i32, 3, 3, 1, 1, 1, 1][..]));
    metadata.set("tokenizer.ggml.unknown_token_id", 0u32);
    metadata.set("tokenizer.ggml.bos_token_id", 1u32);
    metadata.set("tokenizer.ggml.seperator_token_id", 2u32);
    Tokenizer::from_metadata(&metadata, TokenizerOptions::default()).unwrap()
}

/// Returns the `tokenizer.json` of the same tokenizer.
fn json() -> Json {
    let added = |id: u32, content: &str| {
        json!({
            "id": id, "content": content, "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false
        })
    };
    let special = |id: &str| json!({ "SpecialToken": { "id": id, "type_id": 0 } });
    json!({
        "version": "1.0",
        "added_tokens": [added(0, "[UNK]"), added(1, "[CLS]"), added(2, "[SEP]")],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special("[CLS]"), { "Sequence": { "id": "A", "type_id": 0 } }, special("[SEP]")],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 0 } }],
            "special_tokens": {
                "[CLS]": { "id": "[CLS]", "ids": [1], "tokens": ["[CLS]"] },
                "[SEP]": { "id": "[SEP]", "ids": [2], "tokens": ["[SEP]"] }
            }
        },
        "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": { "[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4, ".": 5, "ab": 6 }
        }
    })
}

/// Returns the rules and the shortened texts of the differences.
fn rules(json: &Json, texts: &[&str]) -> Vec<(Rule, String)> {
    let theirs = HuggingFace::from_json(json.to_string().as_bytes()).unwrap();
    let against = TokenizerDiff { ours: &ours(), theirs: &theirs };
    let bos_eos = against.bos_eos().unwrap();
    let texts = texts.iter().filter_map(|text| against.text(text).unwrap());
    bos_eos.into_iter().chain(texts).map(|found| (found.rule, found.text)).collect()
}

#[test]
fn equal_tokenizers_do_not_differ() {
    assert_eq!(rules(&json(), CORPUS), []);
    let theirs = HuggingFace::from_json(json().to_string().as_bytes()).unwrap();
    let added = TokenizerDiff { ours: &ours(), theirs: &theirs }.added_tokens();
    assert_eq!(added.len(), 9);
    assert_eq!(rules(&json(), &added.iter().map(String::as_str).collect::<Vec<_>>()), []);
}

#[test]
fn differences_name_the_rule_and_a_short_text() {
    let mut other = json();
    other["normalizer"]["lowercase"] = false.into();
    assert_eq!(rules(&other, &["a ab. A a"]), [(Rule::Normalizer, "A".to_owned())]);

    let mut other = json();
    (other["model"]["vocab"]["a"], other["model"]["vocab"]["."]) = (5.into(), 3.into());
    assert_eq!(rules(&other, &["ab . ab"]), [(Rule::Vocabulary, ".".to_owned())]);

    let mut other = json();
    other["pre_tokenizer"] = json!({ "type": "Sequence", "pretokenizers": [
        { "type": "BertPreTokenizer" },
        { "type": "Split", "pattern": { "String": "b" }, "behavior": "Isolated", "invert": false }
    ] });
    other["model"]["vocab"]["b"] = 7.into();
    let found = rules(&other, &["a. ab a"]);
    assert_eq!(found, [(Rule::Merges, "b".to_owned())]);

    let mut other = json();
    other["post_processor"] = Json::Null;
    assert_eq!(rules(&other, &["a"]), [(Rule::BosEos, "a".to_owned())]);

    let mut other = json();
    other["added_tokens"][1]["content"] = ".".into();
    other["model"]["vocab"] = json!({ "[UNK]": 0, ".": 1, "[SEP]": 2, "a": 3, "##b": 4, "ab": 6 });
    other["post_processor"] = Json::Null;
    let found = rules(&other, &["ab ."]);
    assert_eq!(found.last(), Some(&(Rule::AddedToken, ".".to_owned())));
}

#[test]
fn invalid_tokenizer_json_is_refused() {
    // The library panics on merges that give a text longer than any token.
    let long = r#"{"model": {"type": "BPE", "vocab": {"ab": 0, "cd": 1}, "merges": ["ab cd"]}}"#;
    for json in ["", "{}", "[1]", "{\"model\": {\"type\": \"BPE\"}}", long] {
        let error = HuggingFace::from_json(json.as_bytes()).err().unwrap().to_string();
        assert!(error.contains("the `tokenizers` library rejects it"), "{error}");
    }
}
