//! Hostile chat templates. `interop/faults/hostile_templates.py` runs every command on each of them and measures
//! resources.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use gguf::{Header, Metadata, RawHeader, write_header};
use gguf_tokenizer::template::{Context, Engine, Error, Limits, Renderer, TemplateSource};

use crate::cli::support::{Dir, MODEL, fails, gguf, json, succeeds};

/// Allows for a busy machine.
const SLACK: Duration = Duration::from_secs(20);

/// Returns name and text of each template.
fn templates() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tokenizer/tests/data/hostile.json");
    let templates = json(&fs::read_to_string(path).unwrap());
    let text = |piece: &serde_json::Value| match piece.as_str() {
        Some(text) => text.to_owned(),
        None => piece[0].as_str().unwrap().repeat(piece[1].as_u64().unwrap() as usize),
    };
    let entry = |(name, pieces): (&String, &serde_json::Value)| {
        (name.clone(), pieces.as_array().unwrap().iter().map(text).collect())
    };
    templates.as_object().unwrap().iter().map(entry).collect()
}

fn template(name: &str) -> String {
    templates().into_iter().find(|(other, _)| other == name).unwrap().1
}

fn context() -> Context {
    Context::new(serde_json::json!([{"role": "user", "content": "Hi"}]))
}

fn renderer() -> Renderer {
    Renderer::process(env!("CARGO_BIN_EXE_gguf"), ["render-template"])
}

/// Writes a model with these templates, some of which `edit` would refuse.
fn model(dir: &Dir, templates: impl IntoIterator<Item = (String, String)>) -> String {
    let path = dir.path("model.gguf");
    let mut draft = RawHeader::default();
    draft.metadata.set("general.architecture", "llama");
    for (key, template) in templates {
        draft.metadata.set(key, template);
    }
    let header = write_header(&Header::new(draft).unwrap()).unwrap();
    fs::write(&path, header).unwrap();
    path
}

fn model_with(dir: &Dir, template: &str) -> String {
    model(dir, [(TemplateSource::KEY.to_owned(), template.to_owned())])
}

#[test]
fn every_hostile_template_terminates_in_time() {
    let time = Duration::from_millis(200);
    let renderer = renderer().with_limits(Limits { time, memory: 64 << 20, ..Limits::default() });
    let templates = templates();
    assert!(templates.len() > 80);
    // llama.cpp's engine refuses many of them before they reach a limit.
    for (engine, least) in [(Engine::Transformers, 80), (Engine::LlamaCpp, 40)] {
        let mut limits = 0;
        for (name, text) in &templates {
            let started = Instant::now();
            let result = TemplateSource::new(text).and_then(|source| {
                let source = source.with_engine(engine, &Metadata::new());
                renderer.render(&source, &context())
            });
            assert!(started.elapsed() < time + SLACK, "{name} {engine:?}");
            match result {
                Err(Error::Process(fault)) => panic!("{name} {engine:?}: {fault}"),
                Err(Error::Limit { .. }) => limits += 1,
                _ => {}
            }
        }
        assert!(limits > least, "{engine:?}: {limits}");
    }
}

/// Both commands name the limit that a template exceeds. The steps pay for each byte, so that they
/// end most templates; the system limits memory and time if the steps do not.
#[test]
fn both_commands_report_limits() {
    let dir = Dir::new();
    let messages = dir.path("messages.json");
    fs::write(&messages, r#"[{"role": "user", "content": "Hi"}]"#).unwrap();
    let used_up = ["2000000 steps", "200000 steps", "256 MB of memory", "2 s of CPU time", "5 s"];
    for (name, limits) in [
        ("string doubles by tilde", &used_up[..]),
        ("list of a long string", &used_up),
        ("in of a doubled list", &used_up),
        ("source too long", &["64 KB of source"]),
    ] {
        let model = model_with(&dir, &template(name));
        let started = Instant::now();
        let output = gguf(&["chat-template", &model, "--messages", &messages]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}: {stderr}");
        let expected = |before: &str, after: &str| {
            limits
                .iter()
                .map(|limit| format!("{before} more than {limit}{after}"))
                .collect::<Vec<_>>()
        };
        let messages = expected("error: chat template: the template needs", "\n");
        assert!(messages.contains(&stderr.replace("line 1: ", "")), "{name}: {stderr}");

        let found = json(&succeeds_or_finds(&["check", &model, "--json"]));
        let found = found["findings"].as_array().unwrap();
        let found: Vec<_> =
            found.iter().filter(|f| f["key"] == "tokenizer.chat_template").collect();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert_eq!(found[0]["code"], "template-limit", "{name}");
        assert_eq!(found[0]["severity"], "warning");
        let message = found[0]["message"].as_str().unwrap().to_owned();
        assert!(expected("needs", " to render").contains(&message), "{name}: {message}");
        assert!(started.elapsed() < Duration::from_secs(10) + 2 * SLACK, "{name}");
    }
}

/// Returns the output of a command that may have findings but prints nothing else.
fn succeeds_or_finds(args: &[&str]) -> String {
    let output = gguf(args);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

/// A check of many hostile templates ends: the steps of each are limited, and the time of all. (A
/// test of the tokenizer shows that templates after the time limit are not rendered.)
#[test]
fn checking_many_templates_has_one_time_limit() {
    let dir = Dir::new();
    let endless = template("in of a doubled list");
    let path =
        model(&dir, (0..50).map(|i| (format!("{}.{i}", TemplateSource::KEY), endless.clone())));
    let started = Instant::now();
    let found = json(&succeeds_or_finds(&["check", &path, "--json"]));
    assert!(started.elapsed() < Duration::from_secs(15) + SLACK);
    let found = found["findings"].as_array().unwrap();
    let found: Vec<_> = found.iter().filter(|f| f["code"] == "template-limit").collect();
    let last = found.last().unwrap()["message"].as_str().unwrap();
    let is_complete = found.len() == 50;
    let is_ended = last.ends_with(" templates from this one on were not rendered");
    assert!(is_complete || is_ended, "{found:?}");
}

/// The request to the renderer process is JSON and must be lossless.
#[test]
fn values_round_trip() {
    let source = TemplateSource::new("{{ x | tojson }}{{ messages | tojson }}{{ y }}").unwrap();
    let mut context = context();
    let deep = (0..110).fold(json("0.1"), |inner, _| serde_json::json!([inner]));
    for x in [
        json(
            "[0.1, 1e-300, 0.30000000000000004, 123456789.12345678, 5e-324, 1.7976931348623157e308]",
        ),
        json("[18446744073709551615, -9223372036854775808, 0, -0.0, true, null]"),
        json(r#"{"b": "\u0000\n\u2028é😀\"", "a": ""}"#),
        deep,
    ] {
        context.variables.insert("x".into(), x);
        context.variables.insert("y".into(), "ä\0\n".repeat(100_000).into());
        let here = Renderer::in_process().render(&source, &context).unwrap();
        assert_eq!(renderer().render(&source, &context).unwrap(), here);
    }
    // Also errors.
    for text in ["{% if %}", "a\n{{ raise_exception('no ' ~ 'é' * 9999) }}", "{{ 1 | nothing }}"] {
        let source = TemplateSource::new(text).unwrap();
        let here = Renderer::in_process().render(&source, &context).unwrap_err().to_string();
        assert!(here.len() < 2200);
        assert_eq!(renderer().render(&source, &context).unwrap_err().to_string(), here);
    }
}

/// Text and conversations at the size limit are rendered.
#[test]
fn long_texts_are_rendered() {
    let source = TemplateSource::new("{{ messages[0].content }}").unwrap();
    let len = Limits::default().text_len;
    let context =
        |len| Context::new(serde_json::json!([{"role": "user", "content": "x".repeat(len)}]));
    assert_eq!(renderer().render(&source, &context(len)).unwrap().len(), len);
    let error = renderer().render(&source, &context(len + 1)).unwrap_err().to_string();
    assert_eq!(error, "line 1: the template needs more than 64 MB of text");
}

#[test]
fn invalid_templates_are_not_written() {
    let dir = Dir::new();
    let [good, bad, long] = ["good.jinja", "bad.jinja", "long.jinja"].map(|name| dir.path(name));
    fs::write(&long, "(".repeat(70_000)).unwrap();
    fs::write(&good, "{{ messages }}").unwrap();
    fs::write(&bad, "{{ messages }}\n{% for m in %}").unwrap();
    let model = model_with(&dir, "old");
    let before = fs::read(&model).unwrap();
    let key = "tokenizer.chat_template";
    let set = |key: &str| format!("{key}={{% if %}}");
    let set_file = |key: &str| format!("{key}={bad}");
    let named = format!("{key}.tool_use");
    for (option, value, message) in [
        (
            "--chat-template-file",
            bad.clone(),
            format!("{bad} is not a valid chat template: line 2: "),
        ),
        ("--set", set(key), format!("--set {key} is not a valid chat template: line 1: ")),
        (
            "--set",
            set(&format!("{named}:str")),
            format!("--set {named} is not a valid chat template: "),
        ),
        ("--set-file", set_file(key), format!("{bad} is not a valid chat template: line 2: ")),
        ("--set-file", set_file(&named), format!("{bad} is not a valid chat template: line 2: ")),
        ("--set-file", format!("{key}={long}"), "more than 64 KB of source".into()),
    ] {
        for target in [&[][..], &["-o", &dir.path("other.gguf")], &["--dry-run"]] {
            fails(&[&["edit", &model, option, &value][..], target].concat(), 2, &[&message]);
        }
    }
    assert_eq!(fs::read(&model).unwrap(), before);
    assert!(!Path::new(&dir.path("other.gguf")).exists());
    // Similar keys are plain text; a renamed key is checked.
    succeeds(&["edit", &model, "--force", "--set", "tokenizer.chat_templating:str={% if %}"]);
    let rename = format!("tokenizer.chat_templating={named}");
    fails(&["edit", &model, "--rename", &rename], 2, &["is not a valid chat template: line 1: "]);
    succeeds(&["edit", &model, "--chat-template-file", &good]);
    assert_eq!(succeeds(&["chat-template", &model]), "{{ messages }}");
}

/// Editing another key accepts an existing invalid template.
#[test]
fn existing_invalid_templates_are_kept() {
    let dir = Dir::new();
    let (model, other) = (dir.path("model.gguf"), dir.path("other.gguf"));
    let checkpoint = dir.path("checkpoint");
    fs::create_dir(&checkpoint).unwrap();
    for file in fs::read_dir(MODEL).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), Path::new(&checkpoint).join(file.file_name())).unwrap();
    }
    fs::write(Path::new(&checkpoint).join("chat_template.jinja"), "{% if %}").unwrap();
    succeeds(&["convert", &checkpoint, "-o", &model]);
    succeeds(&["edit", &model, "--set", "general.name=New"]);
    succeeds(&["edit", &model, "--set", "general.name=Newer", "-o", &other]);
    succeeds(&["edit", &model, "--set", "general.file_type=15"]);
    succeeds(&["check", &model, "--fix", "-o", &dir.path("fixed.gguf")]);
    for file in [&model, &other, &dir.path("fixed.gguf")] {
        assert_eq!(succeeds(&["chat-template", file]), "{% if %}");
    }
}
