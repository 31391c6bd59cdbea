//! `gguf tokenize` and `gguf detokenize`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::support::{Dir, MODEL, fails, json, succeeds};

#[test]
fn output_matches_llama_tokenize() {
    assert_eq!(
        succeeds(&["tokenize", MODEL, "-p", "In the beginning"]),
        "     1 -> '<s>'\n  1036 -> ' In'\n   261 -> ' the'\n  1788 -> ' begin'\n  1246 -> 'ning'\n"
    );
}

#[test]
fn ids_round_trip() {
    let ids = succeeds(&["tokenize", MODEL, "-p", "And God said, é", "--ids", "--no-bos"]);
    assert_eq!(succeeds(&["detokenize", MODEL, ids.trim()]), "And God said, é\n");
    let shown = succeeds(&["tokenize", MODEL, "-p", "a", "--ids", "--show-count"]);
    assert!(shown.starts_with("[1, ") && shown.ends_with("Total number of tokens: 2\n"), "{shown}");
}

#[test]
fn models_and_directories_agree() {
    let dir = Dir::new();
    let (model, lines) = (dir.f16(), dir.path("lines.jsonl"));
    std::fs::write(&lines, "\"In the beginning\"\n\"\"\n").unwrap();
    let of = |source: &str| succeeds(&["tokenize", source, "-f", &lines, "--jsonl"]);
    assert_eq!(of(&model), "[1, 1036, 261, 1788, 1246]\n[1]\n");
    assert_eq!(of(&model), of(MODEL));
    let first = of(&model).lines().next().map(json);
    assert_eq!(first, Some(serde_json::json!([1, 1036, 261, 1788, 1246])));
}

#[test]
fn refusals_have_advice() {
    fails(&["detokenize", MODEL, "99999999"], 2, &["ids range from 0 to 2047"]);
    let dir = Dir::new();
    let lines = dir.path("lines.jsonl");
    std::fs::write(&lines, "\"a\"\nb\n").unwrap();
    let parts = ["line 2 of the input is not a JSON string"];
    fails(&["tokenize", MODEL, "-f", &lines, "--jsonl"], 1, &parts);
}

/// Folders of the model zoo, except whisper, whose post-processor depends on the language.
const ZOO: [&str; 24] = [
    "awq-llama",
    "bert",
    "bloom",
    "falcon",
    "fp8-llama",
    "gemma2",
    "gemma3",
    "gpt2",
    "gpt_neox",
    "gptj",
    "gptq-llama",
    "llama",
    "mamba",
    "mistral",
    "mixed-llama",
    "mixtral",
    "mpt",
    "olmo2",
    "phi3",
    "qwen2",
    "qwen3",
    "qwen3moe",
    "rwkv",
    "stablelm",
];

#[test]
fn vocabularies_without_tensors_are_exported() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name a folder of reference data");
        return;
    };
    let dir = Dir::new();
    let mut count = 0;
    for entry in std::fs::read_dir(PathBuf::from(data).join("vocab")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "gguf") {
            count += 1;
            succeeds(&["export", path.to_str().unwrap(), &dir.path(&count.to_string())]);
        }
    }
    assert_eq!(count, 9);
}

#[test]
fn ids_match_the_original_tokenizers() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name a folder of reference data");
        return;
    };
    let zoo = PathBuf::from(data).join("zoo");
    let mut faults = String::new();
    for name in ZOO {
        let dir = zoo.join(name);
        let cases = std::fs::read(dir.join("tokenizer_cases.json")).unwrap();
        let cases: Value = serde_json::from_slice(&cases).unwrap();
        let cases = cases["cases"].as_array().unwrap();
        for (key, option) in [("ids", Some("--no-bos")), ("ids_with_special", None)] {
            let found = ids_of_lines(&dir, option, cases.iter().map(|case| &case["text"]));
            for (case, found) in cases.iter().zip(found) {
                if found != case[key] {
                    faults +=
                        &format!("{name} {} {key}: {found}, not {}\n", case["text"], case[key]);
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

/// Returns the ids of texts.
fn ids_of_lines<'a>(
    source: &Path,
    option: Option<&str>,
    texts: impl Iterator<Item = &'a Value>,
) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.arg("tokenize").arg(source).args(["--stdin", "--jsonl"]).args(option);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = texts.map(|text| format!("{text}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Regression: `-` was used as a file name.
#[test]
fn dash_is_a_stream() {
    let dir = Dir::new();
    let (model, text) = (dir.f16(), "In the beginning");
    let with = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        command.args(words).current_dir(dir.path(""));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for words in [&["tokenize", &model][..], &["generate", &model, "-n", "3", "--temp", "0"]] {
        let expected = succeeds(&[words, &["-p", text]].concat());
        assert_eq!(with(&[words, &["-f", "-"]].concat()), expected, "{words:?}");
    }
    let embed = ["embed", &model, "--pooling", "mean"];
    assert_eq!(
        with(&[&embed[..], &["-f", "-"]].concat()),
        succeeds(&[&embed[..], &["-p", text]].concat())
    );
    for words in [&["split", &model, "-"][..], &["export", &model, "-"], &["merge", &model, "-"]] {
        fails(words, 2, &["cannot write to a stream", "help: name a file, for example ./-"]);
    }
    let missing = dir.path("missing");
    fails(
        &["tokenize", &model, "-f", &missing],
        3,
        &[&format!("cannot read {missing}: no such file\n")],
    );
}
