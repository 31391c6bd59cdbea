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
fn both_engines_render_a_conversation() {
    let dir = Dir::new();
    let model = dir.f16();
    let template = "{% for m in messages %}{{ m | tojson }}{% endfor %}{{ none }}";
    let set = format!("tokenizer.chat_template:str={template}");
    succeeds(&["edit", &model, "--set", &set]);
    let messages = dir.path("messages.json");
    let parts = r#"[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]"#;
    fs::write(&messages, format!(r#"[{{"content": {parts}, "role": "user"}}]"#)).unwrap();
    let render = ["chat-template", &model, "--messages", &messages];
    let transformers = format!(r#"{{"content": {parts}, "role": "user"}}None"#);
    assert_eq!(succeeds(&render), transformers);
    assert_eq!(succeeds(&[&render[..], &["--engine", "transformers"]].concat()), transformers);
    let llama_cpp = [&render[..], &["--engine", "llama.cpp"]].concat();
    assert_eq!(succeeds(&llama_cpp), r#"{"role": "user", "content": "a\nb"}"#);

    fs::write(&messages, r#"[{"role": "user", "content": [{"type": "image"}]}]"#).unwrap();
    fails(&llama_cpp, 1, &["llama.cpp does not know content parts of type `image`"]);
    fails(&["chat-template", &model, "--engine", "llama.cpp"], 2, &["--messages"]);
    fails(&[&render[..], &["--engine", "ollama"]].concat(), 2, &["transformers", "llama.cpp"]);
}

#[test]
fn check_reports_prompts_that_differ_between_engines() {
    let dir = Dir::new();
    let model = dir.f16();
    let findings = |template: &str| -> Vec<(String, String)> {
        let set = format!("tokenizer.chat_template:str={template}");
        succeeds(&["edit", &model, "--set", &set]);
        let output = gguf(&["check", &model, "--json"]);
        let found = json(std::str::from_utf8(&output.stdout).unwrap());
        let found = found["findings"].as_array().unwrap().iter();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        found
            .filter(|finding| finding["code"] == "template-llama-cpp")
            .map(|finding| (text(&finding["severity"]), text(&finding["message"])))
            .collect()
    };
    let warning = |message: &str| vec![("warning".to_owned(), message.to_owned())];
    assert_eq!(findings(TEMPLATE), []);
    assert_eq!(
        findings(&TEMPLATE.replace("m.role }}", "m.role }}{{ none }}")),
        warning("for a message jinja2 renders \"userNone\", llama.cpp \"user\"")
    );
    // The filter is named once.
    assert_eq!(
        findings(&TEMPLATE.replace("m.content }}", "m.content | wordwrap }}")),
        warning(
            "llama.cpp refuses a message, which jinja2 renders: line 1: Unknown (built-in) filter \
             'wordwrap' for type String"
        )
    );
    // No conversation reaches the filter.
    let unreached =
        TEMPLATE.to_owned() + "{% if messages | length > 99 %}{{ x | wordwrap }}{% endif %}";
    assert_eq!(
        findings(&unreached),
        warning("has parts that llama.cpp's engine refuses: the filter `wordwrap`")
    );
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
