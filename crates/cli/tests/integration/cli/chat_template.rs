//! `gguf chat-template` and `gguf check --tokenizer-against`.

use std::fs;
use std::path::PathBuf;

use crate::cli::support::{Dir, fails, gguf, json, succeeds};

const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}\
                        {% if add_generation_prompt %}{{ x or 'assistant' }}:{% endif %}";

#[test]
fn templates_are_printed_and_rendered() {
    let dir = Dir::new();
    let model = dir.f16();
    fails(&["chat-template", &model, "--name", "rag"], 1, &["no template `rag`"]);
    let set = format!("tokenizer.chat_template:str={TEMPLATE}");
    succeeds(&["edit", &model, "--set", &set, "--set", "tokenizer.chat_template.rag:str=none"]);
    assert_eq!(succeeds(&["chat-template", &model]), TEMPLATE);
    assert_eq!(succeeds(&["chat-template", &model, "--name", "rag"]), "none");
    fails(&["chat-template", &model, "--name", "tool"], 1, &["no template `tool`; it has rag"]);

    let messages = dir.path("messages.json");
    fs::write(&messages, r#"[{"role": "user", "content": "Hi"}]"#).unwrap();
    let render = ["chat-template", &model, "--messages", &messages];
    assert_eq!(succeeds(&render), "user: Hi\nassistant:");
    assert_eq!(succeeds(&[&render[..], &["--set", "x=me"]].concat()), "user: Hi\nme:");
    assert_eq!(succeeds(&[&render[..], &["--no-generation-prompt"]].concat()), "user: Hi\n");
    fails(&[&render[..], &["--set", "x"]].concat(), 2, &["NAME=VALUE"]);
    fs::write(&messages, r#"{"messages": [], "x": "you"}"#).unwrap();
    assert_eq!(succeeds(&render), "you:");
    fs::write(&messages, "{}").unwrap();
    fails(&render, 1, &["neither a list of messages"]);
    fs::write(&messages, "{").unwrap();
    fails(&render, 1, &["is not valid JSON"]);
}

#[test]
fn a_wrong_pre_tokenizer_is_named() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
        return;
    };
    let (dir, source) = (Dir::new(), data.join("zoo/qwen2"));
    let (source, model) = (source.to_str().unwrap(), dir.path("model.gguf"));
    succeeds(&["convert", source, "-o", &model]);
    succeeds(&["check", &model, "--tokenizer-against", source]);
    succeeds(&["edit", &model, "--set", "tokenizer.ggml.pre=gpt-2"]);
    let output = gguf(&["check", &model, "--tokenizer-against", source]);
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = r#"the pre-tokenizer is "gpt-2"; tokenizer.json splits text as "qwen2""#;
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_different_tokenizer_is_detected() {
    let dir = Dir::new();
    let other = dir.path("tokenizer.json");
    let words = r#"{ "type": "WordLevel", "vocab": { "a": 0 }, "unk_token": "a" }"#;
    fs::write(&other, format!(r#"{{ "version": "1.0", "added_tokens": [], "model": {words} }}"#))
        .unwrap();
    let model = dir.f16();
    let output = gguf(&["check", &model, "--tokenizer-against", &other, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let findings = json(std::str::from_utf8(&output.stdout).unwrap());
    let findings = findings["findings"].as_array().unwrap();
    let found = findings.iter().filter(|finding| finding["code"] == "tokenizer-difference");
    assert!(found.count() > 3, "{findings:?}");
    fs::write(&other, "{").unwrap();
    fails(&["check", &model, "--tokenizer-against", &other], 1, &["tokenizer.json"]);
}
