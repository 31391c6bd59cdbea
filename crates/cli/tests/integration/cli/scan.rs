//! `gguf check --scan`.

use std::fs;

use crate::cli::support::{Dir, MODEL, fails, gguf, json, succeeds};

/// Returns the codes of findings and the exit code of a scan.
fn scan(words: &[&str]) -> (Vec<String>, Option<i32>) {
    let output = gguf(&[&["check", "--scan", "--json"], words].concat());
    let document = json(std::str::from_utf8(&output.stdout).unwrap());
    let findings = document["findings"].as_array().unwrap().iter();
    let codes = findings.map(|finding| finding["code"].as_str().unwrap().to_owned());
    (codes.filter(|code| code.starts_with("template-")).collect(), output.status.code())
}

#[test]
fn templates_are_scanned() {
    let dir = Dir::new();
    let model = dir.f16();
    assert_eq!(scan(&[&model]), (vec![], Some(0)));
    let (bad, template) = (dir.path("bad.gguf"), dir.path("bad.jinja"));
    fs::write(&template, "{{ lipsum.__globals__ }}{{ messages[0].content }}").unwrap();
    succeeds(&["edit", &model, "--chat-template-file", &template, "-o", &bad]);
    let (codes, exit) = scan(&[&bad]);
    assert!(codes.iter().any(|code| code == "template-escape") && exit == Some(1), "{codes:?}");
    let sarif =
        json(std::str::from_utf8(&gguf(&["check", &bad, "--scan", "--sarif"]).stdout).unwrap());
    assert!(sarif["runs"][0]["results"].to_string().contains("template-escape"));
}

#[test]
fn templates_are_compared_with_the_base_model() {
    let dir = Dir::new();
    let (model, made) = (dir.f16(), dir.path("made.gguf"));
    let (ours, base) = (dir.path("ours.jinja"), dir.path("base.jinja"));
    let end = "{% if add_generation_prompt %}\n<s>\n{% endif %}";
    let template =
        |turn: &str| format!("{{% for m in messages %}}\n{turn}</s>\n{{% endfor %}}{end}");
    fs::write(&ours, template("{{ m.content or '' }}")).unwrap();
    fs::write(&base, template("{{ m.role ~ (m.content or '') }}")).unwrap();
    succeeds(&["edit", &model, "--chat-template-file", &ours, "-o", &made]);
    assert_eq!(scan(&[&made, "--template-of", &ours]), (vec![], Some(0)));
    assert_eq!(scan(&[&made, "--template-of", &made]), (vec![], Some(0)));
    let differs = vec!["template-differs".to_owned()];
    assert_eq!(scan(&[&made, "--template-of", &base]), (differs.clone(), Some(0)));
    assert_eq!(scan(&[&made, "--template-of", &base, "--strict"]), (differs, Some(1)));
    fails(&["check", &made, "--template-of", &base], 2, &["--scan"]);
    let without = dir.path("without.gguf");
    succeeds(&["edit", &made, "--remove", "tokenizer.chat_template", "-o", &without]);
    fails(&["check", &made, "--scan", "--template-of", &without], 2, &["has no chat template"]);
}

#[test]
fn checkpoints_are_scanned() {
    assert_eq!(scan(&[MODEL]), (vec![], Some(0)));
}

#[test]
fn bills_of_materials_are_printed() {
    let dir = Dir::new();
    let model = dir.f16();
    let bom = json(&succeeds(&["inspect", &model, "--sbom"]));
    assert_eq!((&bom["bomFormat"], &bom["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    let component = &bom["metadata"]["component"];
    let expected = gguf_store::digest::sha256(&fs::read(&model).unwrap());
    assert_eq!(component["hashes"][0]["content"], expected);
    assert_eq!(component["type"], "machine-learning-model");
    assert_eq!(component["modelCard"]["modelParameters"]["architectureFamily"], "llama");
}
