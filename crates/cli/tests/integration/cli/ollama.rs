//! Models in the store of Ollama.

use std::path::Path;
use std::process::{Command, Output};

use crate::cli::support::{Dir, json};

fn run(dir: &Dir, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.args(words).env("OLLAMA_MODELS", dir.path("models")).env("HOME", dir.path("home"));
    command.env("HF_HOME", dir.path("hf")).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn exported_models_are_read_in_place() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let output = run(&dir, &["export", &f16, "--to", "ollama", "mine:f16"]);
    assert!(stdout(&output).is_empty());
    let listed = json(&stdout(&run(&dir, &["list", "--json"])));
    assert_eq!(listed["models"][0]["name"], "mine:f16");
    assert_eq!(listed["models"][0]["store"], "ollama");
    let blob = listed["models"][0]["file"].as_str().unwrap();
    assert_eq!(std::fs::read(blob).unwrap(), std::fs::read(&f16).unwrap());
    assert_eq!(stdout(&run(&dir, &["list"])).split_whitespace().last(), Some("ollama:mine:f16"));
    for command in ["inspect", "check", "hash", "recipe"] {
        stdout(&run(&dir, &[command, "ollama:mine:f16"]));
    }
    // What a name stands for is not edited, and not overwritten.
    let output = run(&dir, &["edit", "ollama:mine:f16", "--set", "general.name=x"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is in a store that names files by their digest"), "{said}");
    let output = run(&dir, &["export", &f16, "--to", "ollama", "mine:f16"]);
    assert_eq!(output.status.code(), Some(2));
    let output = run(&dir, &["inspect", "ollama:other"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("Ollama has mine:f16 in") && said.contains("gguf pull ollama:other:latest"),
        "{said}"
    );
    assert!(Path::new(blob).is_file());
}

#[test]
fn chat_formats_that_are_known_become_templates() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let template = |text: &str, name: &str| {
        let file = dir.path("template");
        std::fs::write(&file, text).unwrap();
        let model = dir.path(&format!("{name}.gguf"));
        stdout(&run(&dir, &["edit", &f16, "--chat-template-file", &file, "-o", &model]));
        let output = run(&dir, &["export", &model, "--to", "ollama", name]);
        stdout(&output);
        let path = dir.path(&format!("models/manifests/registry.ollama.ai/library/{name}/latest"));
        let manifest = json(&std::fs::read_to_string(path).unwrap());
        let kinds = manifest["layers"].as_array().unwrap().iter();
        let kinds = kinds.map(|layer| {
            layer["mediaType"].as_str().unwrap().rsplit('.').next().unwrap().to_owned()
        });
        (kinds.collect::<Vec<_>>(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let chatml = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                  {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    let (kinds, said) = template(chatml, "chatml");
    assert_eq!(kinds, ["model", "template", "params"], "{said}");
    // A default system prompt, which the template in Ollama's language would not add.
    let with_default = format!(
        "{{% if messages[0].role != 'system' %}}<|im_start|>system\nBe kind.<|im_end|>\n{{% endif %}}{chatml}"
    );
    let (kinds, said) = template(&with_default, "default");
    assert_eq!(kinds, ["model"]);
    assert!(said.contains("no template is stored"), "{said}");
}
