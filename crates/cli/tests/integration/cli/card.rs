//! `gguf card`.

use std::fs;

use serde_json::Value;

use crate::cli::support::{Dir, fails, gguf, json, succeeds};

/// Returns a text from the repository.
fn text() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../LICENSE-APACHE").to_owned()
}

/// Directory with a repository: two types, a type in shards, an encoder, and an importance matrix.
struct Repository {
    dir: Dir,
    original: String,
}

impl Repository {
    fn new() -> Self {
        let dir = Dir::new();
        let original = dir.f16();
        let at = |name: &str| dir.path(&format!("repo/{name}"));
        fs::create_dir(dir.path("repo")).unwrap();
        let text = text();
        let imatrix = ["-f", &text, "-c", "64", "--chunks", "3", "-o", &at("imatrix.gguf")];
        succeeds(&[&["imatrix", &original], &imatrix[..]].concat());
        let quantize = ["quantize", "--imatrix", &at("imatrix.gguf"), &original];
        for name in ["q8_0", "q4_k_m"] {
            let output = at(&format!("kjv-{name}.gguf"));
            succeeds(&[&quantize[..], &[&output, name]].concat());
        }
        let shards = ["--split-max-tensors", "20"];
        succeeds(&[&quantize[..], &[&at("kjv-q6_k.gguf"), "q6_k"], &shards].concat());
        let encoder = ["--set", "general.type=mmproj", "--set", "general.architecture=clip"];
        let output = at("mmproj-kjv.gguf");
        succeeds(&[&["edit", &original, "--force", "-o", &output], &encoder[..]].concat());
        Self { dir, original }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path(&format!("repo/{name}"))
    }

    /// Runs `gguf card` and returns the card.
    fn card(&self, more: &[&str]) -> String {
        succeeds(&[&["card", &self.path(""), "-o", "-"], more].concat())
    }
}

/// Digests and losses of the trained model depend on the encoders only.
#[test]
fn the_whole_card() {
    let repository = Repository::new();
    let text = text();
    let report = repository.path("report.json");
    let quality = ["quality", &repository.original, "--types", "q8_0,q6_k", "-f", &text];
    let imatrix = repository.path("imatrix.gguf");
    let more = ["-c", "64", "--chunks", "3", "--no-speed", "--imatrix", &imatrix, "--json"];
    fs::write(&report, succeeds(&[&quality[..], &more].concat())).unwrap();
    let quality = ["quality", &repository.original, "--files", &repository.path("kjv-q4_k_m.gguf")];
    let more = ["-f", &text, "-c", "64", "--chunks", "3", "--no-speed", "--json"];
    let other = repository.dir.path("other.json");
    fs::write(&other, succeeds(&[&quality[..], &more].concat())).unwrap();
    let flags =
        ["--repo", "me/Tiny-KJV-GGUF", "--base-model", "org/Tiny-KJV", "--quantized-by", "me"];
    let sources = ["--results", &other, "--calibration-text", &text];
    let card = repository.card(&[&flags[..], &sources].concat());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // The last digit depends on the instruction set.
    settings.add_filter(r"± 0\.00009[78]", "± 0.00009[7 or 8]");
    // The importance matrix contains the path of its text.
    settings.add_filter(r"gguf\), SHA-256 `[0-9a-f]{64}`", "gguf), SHA-256 `[digest]`");
    settings.add_filter(r"gguf \d+\.\d+\.\d+", "gguf [version]");
    settings.bind(|| insta::assert_snapshot!("card", card.trim_end()));
    assert!(!card.contains(repository.dir.path("").trim_end_matches('/')), "{card}");
}

/// Results of types that were quantized in memory, of files, and of `divergence` are found by digest, also if files are renamed
/// and their metadata is edited.
#[test]
fn results_are_found_by_digest() {
    let repository = Repository::new();
    let (text, original) = (text(), &repository.original);
    let conditions = ["-f", &text, "-c", "64", "--chunks", "2"];
    let imatrix = repository.path("imatrix.gguf");
    let losses = |report: &str| {
        let card = gguf(&["card", &repository.path(""), "--json", "--results", report]);
        let card = json(&String::from_utf8(card.stdout).unwrap());
        let files = card["models"][0]["files"].as_array().unwrap().clone();
        let loss = |file: Value| (file["file"].as_str().unwrap().to_owned(), file["loss"].clone());
        files.into_iter().map(loss).collect::<Vec<_>>()
    };
    succeeds(&["edit", &repository.path("kjv-q4_k_m.gguf"), "--set", "general.quantized_by=x"]);
    fs::rename(repository.path("kjv-q4_k_m.gguf"), repository.path("a.gguf")).unwrap();
    let report = repository.dir.path("report.json");
    // The same importance matrix gives the same weights; without one they differ.
    for (imatrix, is_found) in [(&["--imatrix", &imatrix][..], true), (&[], false)] {
        let types = ["quality", original, "--types", "q4_k_m", "--no-speed", "--json"];
        let found = succeeds(&[&types[..], &conditions, imatrix].concat());
        fs::write(&report, &found).unwrap();
        let losses = losses(&report);
        let names: Vec<_> = losses.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["kjv-q8_0.gguf", "kjv-q6_k-00001-of-00002.gguf", "a.gguf"]);
        let wanted = match is_found {
            true => json(&found)["types"][0]["mean_kld"].clone(),
            false => Value::Null,
        };
        assert_eq!(losses[2].1["mean_kld"], wanted);
        assert!(losses[0].1.is_null() && losses[1].1.is_null());
    }
    let shard = repository.path("kjv-q6_k-00002-of-00002.gguf");
    let files = ["divergence", "-r", original, &repository.path("a.gguf"), &shard, "--json"];
    let found = succeeds(&[&files[..], &conditions].concat());
    fs::write(&report, &found).unwrap();
    let (losses, found) = (losses(&report), json(&found));
    assert_eq!(losses[2].1["mean_kld"], found["models"][0]["mean_kld"]);
    assert_eq!(losses[1].1["mean_kld"], found["models"][1]["mean_kld"]);
    assert_eq!(losses[1].1["top1_agreement"], found["models"][1]["top1_agreement"]);
}

/// Values of files are text in the card, whatever they contain.
#[test]
fn hostile_metadata() {
    let dir = Dir::new();
    fs::create_dir(dir.path("repo")).unwrap();
    let f16 = dir.f16();
    let hostile =
        "x\n---\n# <script>alert(1)</script> | [a](javascript:b) `c` ![d](http://e) \u{202e}";
    let keys = [
        "name",
        "license",
        "license.name",
        "license.link",
        "quantized_by",
        "description",
        "source.repo_url",
        "languages",
        "tags",
    ];
    let set: Vec<String> = keys
        .iter()
        .map(|key| match *key {
            "languages" | "tags" => format!("general.{key}={}", serde_json::json!([hostile])),
            key => format!("general.{key}={hostile}"),
        })
        .chain(
            ["tool", "source", "settings"]
                .map(|key| format!("gguf_kit.provenance.{key}={hostile}")),
        )
        .collect();
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    // Windows has no `|`, `<` and `>` in names.
    let (name, link) = match cfg!(windows) {
        true => ("a`b [i] (c).gguf", "a%60b%20%5Bi%5D%20%28c%29.gguf"),
        false => ("a`|b <i> (c).gguf", "a%60%7Cb%20%3Ci%3E%20%28c%29.gguf"),
    };
    let output = dir.path(&format!("repo/{name}"));
    succeeds(&[&["edit", &f16, "--force", "-o", &output], &set[..]].concat());
    let card = succeeds(&["card", &dir.path("repo"), "-o", "-"]);
    assert_eq!(card.lines().filter(|line| *line == "---").count(), 2, "{card}");
    let (front, body) = card[4..].split_once("\n---\n").unwrap();
    assert!(body.starts_with("\n# "), "{body}");
    // One heading per section, and no link but those of the card.
    for heading in body.lines().filter(|line| line.starts_with('#')) {
        let known = ["# x ", "## Files", "## How the files were made", "## License", "## Citation"];
        assert!(known.iter().any(|known| heading.starts_with(known)), "{heading}");
    }
    assert!(!card.contains('\u{202e}'));
    // In the code of a command, twice, it is text.
    assert_eq!(body.matches("<script>").count(), 2, "{body}");
    assert_eq!(body.matches("[a](javascript").count(), 2, "{body}");
    assert!(front.contains(r#"quantized_by: "x\n---\n# <script>"#), "{front}");
    assert!(body.contains(link), "{body}");
}

#[test]
fn models_with_different_base_models() {
    let dir = Dir::new();
    fs::create_dir(dir.path("repo")).unwrap();
    let f16 = dir.f16();
    for name in ["One", "Two"] {
        let set = [
            format!("general.name={name}"),
            format!("general.source.repo_url=https://huggingface.co/org/{name}"),
            format!("general.license={}", if name == "One" { "mit" } else { "apache-2.0" }),
        ];
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        let output = dir.path(&format!("repo/{name}.gguf"));
        succeeds(&[&["edit", &f16, "-o", &output], &set[..]].concat());
    }
    let card = succeeds(&["card", &dir.path("repo"), "-o", "-"]);
    for part in [
        "base_model:\n- org/One\n- org/Two\n",
        "license: other\nlicense_name: several\n",
        "This repository holds 2 models.",
        "They come from different base models:\n\n- One: [org/One](https://huggingface.co/org/One)\n",
        "## One\n\n| File |",
        "## Two\n\n| File |",
        "## License\n\n- One: mit\n- Two: apache-2.0\n",
    ] {
        assert!(card.contains(part), "{part}: {card}");
    }
}

#[test]
fn nothing_is_replaced() {
    let dir = Dir::new();
    fs::create_dir_all(dir.path("repo/empty")).unwrap();
    let f16 = dir.f16();
    let model = dir.path("repo/m.gguf");
    fs::copy(&f16, &model).unwrap();
    let repo = dir.path("repo");
    let readme = dir.path("repo/README.md");
    fs::write(&readme, "mine").unwrap();
    fails(&["card", &repo], 2, &["README.md exists already", "--force"]);
    assert_eq!(fs::read_to_string(&readme).unwrap(), "mine");
    succeeds(&["card", &repo, "--force"]);
    assert!(fs::read_to_string(&readme).unwrap().starts_with("---\nlibrary_name: gguf\n"));
    let before = fs::read(&model).unwrap();
    fails(&["card", &repo, "-o", &model, "--force"], 2, &["m.gguf"]);
    assert_eq!(fs::read(&model).unwrap(), before);
    fails(&["card", &dir.path("repo/empty")], 2, &["holds no GGUF"]);
    fails(&["card", &dir.path("missing")], 3, &["missing"]);
    let other = dir.path("other.json");
    fs::write(&other, "{}").unwrap();
    fails(&["card", &repo, "-o", "-", "--results", &other], 1, &["other.json", "no results"]);
    fails(&["card", &repo, "--repo", "me"], 2, &["expected ORG/NAME"]);
    fs::write(&model, &before[..1000]).unwrap();
    fails(&["card", &repo, "-o", "-"], 1, &["m.gguf"]);
}
