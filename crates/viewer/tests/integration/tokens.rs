//! Vocabulary, tokenization and chat templates.

use gguf_kit::open;
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};
use serde_json::{Value as Json, json};

use crate::viewer::{Viewer, demo, percent_encoded};

#[test]
fn tokenize_equals_the_tokenizer() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let opened = open(&path).unwrap();
    let tokenizer =
        Tokenizer::from_metadata(opened.model().metadata(), TokenizerOptions::default()).unwrap();
    for text in ["And the king said", "", "  two  spaces", "ä漢字\u{1f600}\n", "<s>x</s>"] {
        for (add_special, parse_special) in [(true, true), (false, false)] {
            let expected = tokenizer.encode(text, EncodeOptions { add_special, parse_special });
            let body =
                json!({ "text": text, "add_special": add_special, "parse_special": parse_special });
            let found = viewer.post("models/0/tokenize", &body).ok();
            assert_eq!(found["ids"], json!(expected), "{text}");
            let tokens = found["tokens"].as_array().unwrap();
            for (id, token) in expected.iter().zip(tokens) {
                let hex: String = tokenizer
                    .token_bytes(*id)
                    .unwrap()
                    .iter()
                    .map(|b| format!("{b:02x}"))
                    .collect();
                assert_eq!((&token["id"], &token["hex"]), (&json!(id), &json!(hex)));
            }
            // Pieces cover all tokens, and merges lead from symbols to tokens.
            let mut at = 0;
            for step in found["steps"].as_array().unwrap() {
                assert_eq!(step["tokens"][0], at);
                at = step["tokens"][1].as_u64().unwrap();
                for word in step["words"].as_array().into_iter().flatten() {
                    merges_lead_to_tokens(word);
                }
            }
            assert_eq!(at as usize, expected.len());
        }
    }
}

fn merges_lead_to_tokens(word: &Json) {
    let text = |json: &Json| json.as_str().unwrap().to_owned();
    let mut symbols: Vec<String> = word["symbols"].as_array().unwrap().iter().map(text).collect();
    for merge in word["merges"].as_array().unwrap() {
        let at = merge["at"].as_u64().unwrap() as usize;
        assert_eq!(
            (&symbols[at], &symbols[at + 1]),
            (&text(&merge["left"]), &text(&merge["right"]))
        );
        let right = symbols.remove(at + 1);
        symbols[at] += &right;
        assert!(merge["score"].is_number() && merge["rank"].is_null(), "{merge}");
    }
    // Byte fallback: a character without a token becomes several tokens.
    assert!(symbols.len() as u64 <= word["tokens"].as_u64().unwrap(), "{word}");
}

#[test]
fn tokens_are_listed_and_searched() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let facts = viewer.json("models/0/tokenizer");
    assert_eq!(
        (&facts["model"], &facts["error"], &facts["has_scores"]),
        (&"llama".into(), &Json::Null, &true.into())
    );
    let total = facts["tokens"].as_u64().unwrap();
    let first = viewer.json("models/0/tokens?limit=3");
    assert_eq!((&first["total"], &first["found"]), (&total.into(), &total.into()));
    assert_eq!(
        (&first["tokens"][1]["text"], &first["tokens"][1]["roles"]),
        (&"<s>".into(), &json!(["bos"]))
    );
    assert_eq!(first["tokens"][1]["type"], "control");
    let byte = viewer.json("models/0/tokens?type=byte&limit=1");
    assert_eq!((&byte["found"], &byte["tokens"][0]["text"]), (&256.into(), &"<0x00>".into()));
    assert_eq!(byte["tokens"][0]["stands_for_hex"], "00");
    let king = viewer.json("models/0/tokens?search=KING");
    assert!(king["found"].as_u64().unwrap() > 0 && king["found"].as_u64().unwrap() < 50, "{king}");
    let id = viewer.json(&format!("models/0/tokens?search={}", percent_encoded("#300")));
    assert_eq!((&id["found"], &id["tokens"][0]["id"]), (&1.into(), &300.into()));
    assert_eq!(viewer.json("models/0/merges")["total"], 0);
    viewer.assert_error("models/0/tokens?limit=1001", 400, "request-invalid");
}

#[test]
fn templates_are_rendered_or_report_the_line_of_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    assert_eq!(viewer.json("models/0/templates"), json!({ "templates": [] }));
    let messages = json!([{ "role": "user", "content": "<script>alert(1)</script>" }]);
    viewer
        .post("models/0/template", &json!({ "messages": messages }))
        .assert_error(404, "name-not-found");
    let source =
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}";
    let text =
        viewer.post("models/0/template", &json!({ "messages": messages, "source": source })).ok();
    assert_eq!(text["text"], "<s>[user] <script>alert(1)</script>\n");
    for (source, code, line) in [
        ("a\n{% for x in", "template-syntax", 2),
        ("a\nb\n{{ raise_exception('no') }}", "template-refused", 3),
        (
            "a\n{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}",
            "template-limit",
            2,
        ),
    ] {
        let body = json!({ "messages": messages, "source": source });
        let error = viewer.post("models/0/template", &body).assert_error(422, code);
        assert_eq!(error["error"]["line"], line, "{error}");
    }
    viewer
        .post("models/0/template", &json!({ "messages": 5 }))
        .assert_error(400, "request-invalid");
}
