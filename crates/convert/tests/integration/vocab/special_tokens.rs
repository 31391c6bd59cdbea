//! Special tokens and chat templates.

use gguf::Value as Gguf;
use gguf_convert::vocab::VocabularyOptions;
use gguf_models::convert::VocabularyKind;
use serde_json::json;

use super::{assert_noted, convert, tiny_bpe};
use crate::fixtures::tokenizer_files::{added, rows};

#[test]
fn special_tokens_follow_configuration_and_template() {
    let mut tokenizer = tiny_bpe();
    tokenizer["added_tokens"] =
        json!([added(3, "<s>", true, false), added(4, "</s>", true, false)]);
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>"}},
            {"Sequence": {"id": "A"}},
            {"SpecialToken": {"id": "</s>"}},
        ],
        "pair": []
    });
    let config = json!({
        "bos_token": {"content": "<s>"}, "eos_token": "b", "add_eos_token": false,
        "chat_template": [
            {"name": "default", "template": "D"},
            {"name": "tool use", "template": "T"},
            {"name": "", "template": "left out"},
        ]
    });
    let model = json!({
        "text_config": {"pad_token_id": 2}, "bos_token_id": 0, "eos_token_id": [1],
        "unk_token_id": -1
    });
    let tokenizer = tokenizer.to_string();
    let config = config.to_string();
    let model = model.to_string();
    let files: [(&str, &[u8]); 3] = [
        ("tokenizer.json", tokenizer.as_bytes()),
        ("tokenizer_config.json", config.as_bytes()),
        ("config.json", model.as_bytes()),
    ];
    let found = convert(&files, VocabularyKind::Bpe, &VocabularyOptions::default()).unwrap();
    let from_ids: Vec<_> = found.metadata.iter().skip(5).collect();
    assert_eq!(
        from_ids,
        [
            ("tokenizer.ggml.bos_token_id", &Gguf::U32(3)),
            ("tokenizer.ggml.eos_token_id", &Gguf::U32(4)),
            ("tokenizer.ggml.padding_token_id", &Gguf::U32(2)),
            ("tokenizer.ggml.add_bos_token", &Gguf::Bool(true)),
            ("tokenizer.ggml.add_eos_token", &Gguf::Bool(true)),
            ("tokenizer.chat_template.tool_use", &"T".into()),
            ("tokenizer.chat_templates", &gguf::Array::from_strings(["tool_use"]).into()),
            ("tokenizer.chat_template", &"D".into()),
        ]
    );
    assert_noted(&found, "add_eos_token is false");
    assert_noted(&found, "its id -1");
}

#[test]
fn chat_templates_are_found_beside_the_configuration() {
    let tokenizer = tiny_bpe().to_string();
    let mut files: Vec<(&str, &[u8])> = vec![
        ("tokenizer.json", tokenizer.as_bytes()),
        ("chat_template.json", br#"{"chat_template": "from json"}"#),
    ];
    let template = |files: &[(&str, &[u8])], key: &str| {
        convert(files, VocabularyKind::Bpe, &rows(8)).unwrap().metadata.str(key).map(str::to_owned)
    };
    // llama.cpp's converter looks for the template only if there is a configuration.
    assert_eq!(template(&files, "tokenizer.chat_template"), None);
    files.push(("tokenizer_config.json", br#"{"model_max_length": 1}"#));
    assert_eq!(template(&files, "tokenizer.chat_template").as_deref(), Some("from json"));
    files.push(("chat_template.jinja", b"a\r\nb"));
    files.push(("additional_chat_templates/rag.jinja", b"R"));
    assert_eq!(template(&files, "tokenizer.chat_template").as_deref(), Some("a\nb"));
    assert_eq!(template(&files, "tokenizer.chat_template.rag").as_deref(), Some("R"));
    // As in `transformers`, the file takes precedence over the configuration.
    files[2].1 = br#"{"chat_template": "from configuration"}"#;
    assert_eq!(template(&files, "tokenizer.chat_template").as_deref(), Some("a\nb"));
    let notes = convert(&files, VocabularyKind::Bpe, &rows(8)).unwrap().notes;
    let expected =
        "took the chat template of chat_template.jinja; the one in tokenizer_config.json differs";
    assert!(notes.iter().any(|note| note == expected), "{notes:?}");
    files.pop();
    files.pop();
    let from_configuration = template(&files, "tokenizer.chat_template");
    assert_eq!(from_configuration.as_deref(), Some("from configuration"));
}
