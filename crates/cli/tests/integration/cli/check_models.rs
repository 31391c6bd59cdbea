//! `gguf check` of files that people come with: holes, wrong end tokens, several models, changed templates.

use std::fs;
use std::path::Path;

use crate::cli::support::{Dir, fails, gguf, json, succeeds};

const CHATML: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                      {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Standard output of `gguf check`.
fn text(args: &[&str]) -> String {
    String::from_utf8(gguf(&[&["check"], args].concat()).stdout).unwrap()
}

#[test]
fn weights_of_small_models_are_read_by_default() {
    let dir = Dir::new();
    let f16 = dir.f16();
    assert!(!text(&[&f16]).contains("weights not read"));
    assert!(text(&[&f16, "--no-data"]).contains("(weights not read)"));
    for (args, read) in [(&[&*f16, "--json"][..], true), (&[&f16, "--json", "--no-data"], false)] {
        assert_eq!(json(&text(args))["data_read"], read);
    }
    // A download that left zeros, within a matrix and over several tensors.
    let mut bytes = fs::read(&f16).unwrap();
    bytes[4_000_001..4_060_001].fill(0);
    fs::write(&f16, &bytes).unwrap();
    fails(&["check", &f16], 1, &[]);
    let shown = text(&[&f16]);
    assert!(shown.contains("error: data-hole") && shown.contains("60.0 kB of zeros"), "{shown}");
    succeeds(&["check", &f16, "--no-data"]);
}

#[test]
fn all_models_of_a_directory_are_checked() {
    let dir = Dir::new();
    let (f16, folder) = (dir.f16(), dir.path("models"));
    fs::create_dir(&folder).unwrap();
    let within = |name: &str| Path::new(&folder).join(name).display().to_string();
    fs::copy(&f16, within("a.gguf")).unwrap();
    fs::write(within("b.gguf"), "no model").unwrap();
    fs::write(within("notes.txt"), "no model").unwrap();
    succeeds(&["split", &f16, &within("c"), "--split-max-size", "2M"]);
    let output = gguf(&["check", &folder, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).unwrap();
    let files: Vec<_> = shown.lines().map(|line| json(line)["file"].clone()).collect();
    let expected = ["a.gguf", "b.gguf", "c-00001-of-00005.gguf"].map(within);
    assert_eq!(files, expected);
    // Shards are one model.
    let shards: Vec<_> =
        (1..=5).map(|number| within(&format!("c-0000{number}-of-00005.gguf"))).collect();
    let shards: Vec<&str> = shards.iter().map(String::as_str).collect();
    assert_eq!(text(&shards).lines().count(), 1);
}

#[test]
fn nothing_is_written_if_nothing_is_repaired() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("fixed.gguf"));
    let output = gguf(&["check", &f16, "--fix", "-o", &out]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to repair; wrote nothing"));
    assert!(output.status.success() && !Path::new(&out).exists());
    // A fault without a right answer.
    let scaled = dir.path("scaled.gguf");
    succeeds(&[
        "edit",
        &f16,
        "-o",
        &scaled,
        "--force",
        "--set",
        "llama.rope.scaling.type=foo",
        "--special-token-by-id",
        "eos=300",
    ]);
    let before = fs::read(&scaled).unwrap();
    fails(&["check", &scaled, "--fix", "-o", &out], 1, &["nothing to repair"]);
    assert!(!Path::new(&out).exists());
    fails(&["check", &scaled, "--fix", "--in-place"], 1, &["nothing to repair"]);
    assert_eq!(fs::read(&scaled).unwrap(), before);
    assert!(text(&[&scaled]).contains("is ordinary text"));
}

#[test]
fn the_end_token_of_the_template_is_repaired() {
    let dir = Dir::new();
    let (f16, template) = (dir.f16(), dir.path("chat.jinja"));
    let (wrong, fixed) = (dir.path("wrong.gguf"), dir.path("fixed.gguf"));
    fs::write(&template, "{% for m in messages %}{{ m.content }}</s>{% endfor %}").unwrap();
    // A word as EOS.
    succeeds(&[
        "edit",
        &f16,
        "-o",
        &wrong,
        "--special-token-by-id",
        "eos=300",
        "--chat-template-file",
        &template,
    ]);
    let shown = text(&[&wrong]);
    assert!(shown.contains("token-role") && shown.contains("template-end"), "{shown}");
    let output = gguf(&["check", &wrong, "--fix", "-o", &fixed]);
    let done = String::from_utf8(output.stderr).unwrap();
    assert!(done.contains("set tokenizer.ggml.eos_token_id to 2"), "{done}");
    let shown = text(&[&fixed]);
    assert!(!shown.contains("token-role") && !shown.contains("template-end"), "{shown}");
}

#[test]
fn templates_are_compared_with_upstream() {
    let dir = Dir::new();
    let (f16, changed) = (dir.f16(), dir.path("changed.gguf"));
    let (own, upstream) = (dir.path("own.jinja"), dir.path("upstream"));
    fs::create_dir(&upstream).unwrap();
    fs::write(&own, CHATML).unwrap();
    succeeds(&["edit", &f16, "-o", &changed, "--chat-template-file", &own]);
    let set =
        |template: &str| fs::write(format!("{upstream}/chat_template.jinja"), template).unwrap();
    let found = || {
        let shown = json(&text(&[&changed, "--json", "--no-data", "--upstream", &upstream]));
        let findings = shown["findings"].as_array().unwrap().clone();
        let of_upstream = findings.into_iter().filter(|one| one["code"] == "prompt-differs");
        of_upstream.map(|one| (one["severity"].clone(), one["message"].clone())).collect::<Vec<_>>()
    };
    set(CHATML);
    assert_eq!(found(), []);
    set(&CHATML.replace("{{ m.content }}", "{{ m.content }}{% if tools %}!{% endif %}"));
    let differences = found();
    assert_eq!(differences.len(), 2, "{differences:#?}");
    assert!(differences.iter().all(|(severity, _)| severity == "warning"));
    assert!(differences[0].1.as_str().unwrap().ends_with("(tools)"), "{differences:#?}");
    // White space only.
    set(&CHATML.replace("\n{{ m.content }}", "\n\n{{ m.content }}"));
    assert!(found().iter().all(|(severity, _)| severity == "note"));
    // The file names no base model, and the directory has no template.
    let without = dir.path("without");
    fs::create_dir(&without).unwrap();
    fails(&["check", &changed, "--upstream", &without], 2, &["has no chat template"]);
    fails(&["check", &changed, "--upstream"], 2, &["--upstream hf:org/repo"]);
    // Another GGUF.
    assert!(!text(&[&changed, "--upstream", &changed]).contains("prompt-differs"));
}

#[test]
fn templates_that_ollama_replaces_are_named() {
    let dir = Dir::new();
    let (f16, model) = (dir.f16(), dir.path("model.gguf"));
    let (own, list) = (dir.path("own.jinja"), dir.path("template"));
    fs::create_dir(&list).unwrap();
    fs::write(&own, format!("{CHATML}{{# tools #}}")).unwrap();
    succeeds(&["edit", &f16, "-o", &model, "--chat-template-file", &own]);
    let set = |entries: &[(&str, &str)]| {
        let entries = entries
            .iter()
            .map(|(name, template)| serde_json::json!({"name": name, "template": template}));
        let list_of = serde_json::Value::Array(entries.collect()).to_string();
        fs::write(format!("{list}/index.json"), list_of).unwrap();
    };
    let found = || {
        let shown = json(&text(&[&model, "--json", "--no-data", "--ollama-templates", &list]));
        let findings = shown["findings"].as_array().unwrap().clone();
        let of_ollama = findings.into_iter().filter(|one| one["code"] == "template-ollama");
        of_ollama.map(|one| one["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    set(&[("other", &"x".repeat(1000)), ("chatml", CHATML)]);
    let own_name = "`ollama create` replaces the chat template by Ollama's own \"chatml\"";
    assert_eq!(found(), [format!("{own_name} (Levenshtein distance 11, limit 100)")]);
    fs::write(format!("{list}/chatml.gotmpl"), "{{ .Prompt }}").unwrap();
    assert_eq!(
        found(),
        [format!("{own_name}, which ignores tools (Levenshtein distance 11, limit 100)")]
    );
    fs::write(format!("{list}/chatml.gotmpl"), "{{ .Tools }}").unwrap();
    assert_eq!(found(), [format!("{own_name} (Levenshtein distance 11, limit 100)")]);
    set(&[("far", &CHATML.replace("m", &"m".repeat(40)))]);
    assert_eq!(found(), Vec::<String>::new());
    fs::write(format!("{list}/index.json"), "{").unwrap();
    fails(&["check", &model, "--ollama-templates", &list], 1, &["Ollama's repository"]);
    fails(&["check", &model, "--ollama-templates", "nowhere"], 3, &["nowhere"]);
}
