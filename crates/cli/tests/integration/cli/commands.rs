//! Outputs, exit codes and refusals of the binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::support::{Dir, MODEL, fails, gguf, json, succeeds};

#[test]
fn convert_inspect_check() {
    let dir = Dir::new();
    let out = dir.path("out.gguf");
    succeeds(&["convert", MODEL, "-o", &out, "--outtype", "Q4_K_M"]);
    let shown = json(&succeeds(&["inspect", &out, "--json"]));
    assert_eq!(shown["architecture"], "llama");
    assert_eq!(shown["file_type"], "Q4_K_M");
    assert_eq!(shown["name"], "Tiny KJV Llama 4M");
    assert_eq!(shown["context_length"], 512);
    assert_eq!(shown["tokenizer"]["tokens"], 2048);
    assert_eq!(shown["metadata"]["llama.block_count"]["value"], 4);
    assert_eq!(shown["metadata"]["tokenizer.ggml.tokens"]["value"]["length"], 2048);
    assert_eq!(shown["tensors"].as_array().unwrap().len(), 39);
    let text = succeeds(&["inspect", &out]);
    assert!(text.contains("architecture   llama") && !text.contains("blk.3.ffn_down.weight"));
    assert!(succeeds(&["inspect", &out, "--all"]).contains("blk.3.ffn_down.weight"));
    let findings = json(&succeeds(&["check", &out, "--json"]));
    let severities = findings["findings"].as_array().unwrap().iter().map(|f| &f["severity"]);
    assert_eq!(severities.filter(|severity| *severity == "error").count(), 0);
}

#[test]
fn default_names_follow_the_convention() {
    let dir = Dir::new();
    let into = dir.path("");
    succeeds(&["convert", MODEL, "-o", &into, "--outtype", "q8_0"]);
    let named = Path::new(&into).join("Tiny-KJV-Llama-4M-Q8_0.gguf");
    // By default, in the working directory.
    let work = dir.path("work");
    std::fs::create_dir(&work).unwrap();
    let mut convert = Command::new(env!("CARGO_BIN_EXE_gguf"));
    let convert = convert.args(["convert", MODEL]).current_dir(&work);
    assert!(convert.status().unwrap().success());
    assert!(Path::new(&work).join("Tiny-KJV-Llama-4M-F16.gguf").is_file());
    assert!(named.is_file(), "{:?}", std::fs::read_dir(into).unwrap().collect::<Vec<_>>());
}

#[test]
fn dry_run_writes_nothing() {
    let dir = Dir::new();
    let out = dir.path("out.gguf");
    let args = ["convert", MODEL, "-o", &out, "--outtype", "q4_k_m", "--dry-run", "--json"];
    let plan = json(&succeeds(&args));
    assert_eq!(plan["tensors"].as_array().unwrap().len(), 39);
    assert!(!PathBuf::from(&out).exists());
    let f16 = dir.f16();
    let plan = json(&succeeds(&["quantize", "--dry-run", "--json", &f16, &out, "q4_k_m"]));
    let first = &plan["tensors"][0];
    assert_eq!(first["name"], "output.weight");
    assert_eq!((&first["from"], &first["to"]), (&"F16".into(), &"Q6_K".into()));
    assert_eq!(first["shape"], serde_json::json!([256, 2048]));
    assert_eq!(first["bytes"], 2048 * 210);
    assert!(!PathBuf::from(&out).exists());
    assert!(succeeds(&["quantize", &f16, "q4_k_m", "--dry-run"]).contains("bits per weight"));
}

#[test]
fn quantize_takes_the_official_forms() {
    let dir = Dir::new();
    let f16 = dir.f16();
    // Without an output name, options after the files, threads, alias, number.
    succeeds(&["quantize", &f16, "Q4_K", "2", "--leave-output-tensor"]);
    let named = dir.path("f16-4.2M-Q4_K_M.gguf");
    let types = |path: &str| {
        let shown = json(&succeeds(&["inspect", path, "--json"]));
        shown["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tensor| {
                (
                    tensor["name"].as_str().unwrap().to_owned(),
                    tensor["type"].as_str().unwrap().to_owned(),
                )
            })
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(types(&named)["output.weight"], "F16");
    let out = dir.path("out.gguf");
    succeeds(&["quantize", "--pure", &f16, &out, "15"]);
    assert_eq!(types(&out)["output.weight"], "Q4_K");
    succeeds(&["quantize", "--force", "--pure", &f16, &out, "q5_1"]);
    assert_eq!(types(&out)["blk.0.attn_q.weight"], "Q5_1");
    succeeds(&[
        "quantize",
        "--force",
        "--tensor-type",
        r"blk\.\d\.attn_q=q8_0",
        "--tensor-type",
        "attn=q5_0",
        "--token-embedding-type",
        "q2_k",
        "--output-tensor-type",
        "bf16",
        &f16,
        &out,
        "q4_0",
    ]);
    let types = types(&out);
    assert_eq!(types["blk.0.attn_q.weight"], "Q8_0");
    assert_eq!(types["blk.0.attn_k.weight"], "Q5_0");
    assert_eq!(types["blk.0.ffn_up.weight"], "Q4_0");
    assert_eq!(types["token_embd.weight"], "Q2_K");
    assert_eq!(types["output.weight"], "BF16");
}

#[test]
fn quantize_overrides_keys() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    succeeds(&[
        "quantize",
        &f16,
        &out,
        "q8_0",
        "--override-kv",
        "llama.context_length=int:1024",
        "--override-kv",
        "my.flag=bool:true",
        "--override-kv",
        "my.text=str:a=b:c",
        "--override-kv",
        "my.number=float:0.5",
        "--override-kv",
        "my.negative=int:-3",
    ]);
    let metadata = &json(&succeeds(&["inspect", &out, "--json"]))["metadata"];
    let of = |key: &str| metadata[key].to_string();
    assert_eq!(of("llama.context_length"), r#"{"type":"UINT32","value":1024}"#);
    assert_eq!(of("my.flag"), r#"{"type":"BOOL","value":true}"#);
    assert_eq!(of("my.text"), r#"{"type":"STRING","value":"a=b:c"}"#);
    assert_eq!(of("my.number"), r#"{"type":"FLOAT32","value":0.5}"#);
    assert_eq!(of("my.negative"), r#"{"type":"INT32","value":-3}"#);
    fails(
        &["quantize", "--force", &f16, &out, "q8_0", "--override-kv", "x=int:y"],
        2,
        &["override-kv"],
    );
}

#[test]
fn requantizing_needs_a_flag() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let (q8, out) = (dir.path("q8.gguf"), dir.path("out.gguf"));
    succeeds(&["quantize", &f16, &q8, "q8_0"]);
    fails(&["quantize", &q8, &out, "q4_0"], 2, &["already quantized", "--allow-requantize"]);
    assert!(!PathBuf::from(&out).exists());
    succeeds(&["quantize", "--allow-requantize", &q8, &out, "q4_0"]);
    fails(&["quantize", &f16, &f16, "q4_0"], 2, &["is an input"]);
    fails(&["quantize", "--force", &f16, &out, "iq2_xxs"], 2, &["importance"]);
}

#[test]
fn fallback_types_are_reported() {
    let dir = Dir::new();
    let (odd, out) = (dir.path("odd.gguf"), dir.path("out.gguf"));
    std::fs::write(&odd, one_matrix(96, 4)).unwrap();
    let output = gguf(&["quantize", &odd, &out, "q4_k_s"]);
    assert!(output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("`blk.0.ffn_up.weight` becomes Q5_0 instead of Q4_K"), "{stderr}");
}

/// Tensors of one kind are one note.
#[test]
fn many_fallback_types_are_one_note() {
    let dir = Dir::new();
    let (odd, out) = (dir.path("odd.gguf"), dir.path("out.gguf"));
    let mut draft = gguf::RawHeader::default();
    draft.metadata.set("general.architecture", "unheard-of");
    for layer in 0..7 {
        draft.tensors.push(gguf::TensorInfo {
            name: format!("blk.{layer}.ffn_up.weight"),
            shape: gguf::Shape::new(&[96, 4]).unwrap(),
            tensor_type: gguf::TensorType::F32,
            offset: 0,
            opaque_len: None,
        });
    }
    draft.lay_out().unwrap();
    let mut file = gguf::write_header(&gguf::Header::new(draft).unwrap()).unwrap();
    file.extend([0; 7 * 96 * 4 * 4]);
    std::fs::write(&odd, file).unwrap();
    let output = gguf(&["quantize", &odd, &out, "q4_k_s"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr.matches("note:").count(), 1, "{stderr}");
    assert!(stderr.contains("7 of 7 tensors have rows of 96 elements"), "{stderr}");
    assert!(stderr.contains("Q5_0 instead of Q4_K (7)"), "{stderr}");
}

#[test]
fn names_that_are_no_files_are_explained() {
    fails(&["inspect", "Qwen/Qwen3-0.6B"], 2, &["`hf:Qwen/Qwen3-0.6B`"]);
    fails(&["convert", "Qwen/Qwen3-0.6B", "-o", "x.gguf"], 2, &["`hf:Qwen/Qwen3-0.6B`"]);
    fails(&["inspect", "org/model.gguf"], 3, &["org/model.gguf"]);
    fails(&["generate", MODEL, "-p", "a"], 2, &["is a checkpoint", "`gguf convert "]);
}

#[test]
fn the_help_of_llama_quantize_lists_the_types() {
    let help = succeeds(&["llama-quantize", "--help"]);
    assert!(help.contains("Q4_K_M") && help.contains("IQ2_XXS"), "{help}");
}

/// Returns a model of an unknown architecture with a single matrix.
fn one_matrix(columns: u64, rows: u64) -> Vec<u8> {
    let mut draft = gguf::RawHeader::default();
    draft.metadata.set("general.architecture", "unheard-of");
    draft.tensors.push(gguf::TensorInfo {
        name: "blk.0.ffn_up.weight".into(),
        shape: gguf::Shape::new(&[columns, rows]).unwrap(),
        tensor_type: gguf::TensorType::F32,
        offset: 0,
        opaque_len: None,
    });
    draft.lay_out().unwrap();
    let mut file = gguf::write_header(&gguf::Header::new(draft).unwrap()).unwrap();
    file.resize(file.len() + (columns * rows * 4) as usize, 0);
    file
}

#[test]
fn exit_codes() {
    let dir = Dir::new();
    let bad = dir.path("bad.gguf");
    std::fs::write(&bad, b"not a model at all").unwrap();
    fails(
        &["inspect", &bad],
        1,
        &["bad.gguf", "this is a text file, not a model: not a model at all"],
    );
    fails(&["quantize", &bad, &dir.path("out.gguf"), "q8_0"], 1, &["bad.gguf"]);
    let output = gguf(&["check", &bad, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let findings = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(findings["findings"][0]["code"], "magic");
    assert_eq!(findings["findings"][0]["severity"], "error");

    fails(&[], 2, &["Usage"]);
    fails(&["convert"], 2, &["Usage"]);
    fails(&["convert", MODEL, "--outtype", "q9"], 2, &["q9", "Q4_K_M"]);
    fails(&["convert", MODEL, "--like", "camel"], 2, &["camel", "LlamaForCausalLM"]);
    fails(&["quantize", &bad, "q9"], 2, &["q9"]);
    fails(&["inspect", "--json"], 2, &["SOURCE is missing"]);

    fails(&["inspect", &dir.path("missing.gguf")], 3, &["missing.gguf"]);
    fails(&["check", &dir.path("missing.gguf")], 3, &["missing.gguf"]);
    fails(&["convert", MODEL, "-o", &dir.path("no/such/dir.gguf")], 3, &["dir.gguf"]);
    fails(&["convert", &dir.path("missing")], 3, &["missing"]);
}

/// Returns the words of every command without subcommands, such as `lora merge`.
pub fn commands() -> Vec<String> {
    fn add(words: &str, all: &mut Vec<String>) {
        let help = help(words);
        let Some((_, list)) = help.split_once("\nCommands:\n").or_else(|| {
            // The top-level help has groups.
            help.split_once("\nCreate:\n").filter(|_| words.is_empty())
        }) else {
            return all.push(words.trim().to_owned());
        };
        let list = list.split("\nOptions:").next().unwrap();
        let lines = list.lines().filter(|line| line.starts_with("  "));
        let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        for name in names.filter(|name| !matches!(*name, "" | "help")) {
            add(&format!("{words}{name} "), all);
        }
    }
    let mut all = Vec::new();
    add("", &mut all);
    assert!(all.len() > 20, "{all:?}");
    all
}

pub fn help(words: &str) -> String {
    let args: Vec<&str> = words.split_whitespace().chain(["--help"]).collect();
    succeeds(&args)
}

#[test]
fn every_help_has_an_example() {
    for command in commands() {
        let help = help(&command);
        let (_, examples) = help.split_once("Example").unwrap_or_default();
        assert!(examples.contains(&format!("gguf {command}")), "gguf {command} --help");
    }
    assert!(succeeds(&["--help"]).contains("types, quantization, exit-codes"));
}

#[test]
fn every_command_is_in_the_readme() {
    let readme = include_str!("../../../../../README.md");
    let rows: String = readme.lines().filter(|line| line.starts_with("| `gguf ")).collect();
    for command in commands() {
        let first = command.split(' ').next().unwrap();
        let is_named = [" ", "`"].iter().any(|end| rows.contains(&format!("`gguf {first}{end}")));
        assert!(is_named, "README.md has no row for gguf {first}");
    }
}

/// Every command with `--force` is covered by the output tests.
#[test]
fn every_writing_command_has_output_tests() {
    let writers = include_str!("../outputs/writers.rs");
    // `demo` runs several conversions: outputs before a failure remain. Manual pages are tested with the help. `upload`
    // writes to a repository.
    let held = |command: &&String| {
        !matches!(command.as_str(), "demo" | "man" | "upload") && help(command).contains("--force")
    };
    for command in commands().iter().filter(held) {
        let is_named = writers.contains(&format!("\"{command} "));
        assert!(is_named, "gguf {command} is not in tests/outputs/writers.rs");
    }
}

#[test]
fn demo_is_self_contained() {
    let dir = Dir::new();
    let output = Command::new(env!("CARGO_BIN_EXE_gguf"))
        .args(["demo", "--keep", "kept"])
        .current_dir(dir.path(""))
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for words in ["Q8_0", "Q4_K_M", "Behold, I will send", "Next:", "gguf inspect"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= 80, "{longest}: {shown}");
    // The suggested next commands work.
    let next = shown.lines().find_map(|line| line.trim().strip_prefix("gguf inspect ")).unwrap();
    assert!(succeeds(&["inspect", &dir.path(next)]).contains("Q4_K_M"));
    assert!(succeeds(&["demo", MODEL]).contains("Q4_K_M"));
}

/// As in `gguf inspect x | head -1`.
#[cfg(unix)]
#[test]
fn a_closed_pipe_is_not_a_failure() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let mut child = Command::new(env!("CARGO_BIN_EXE_gguf"))
        .args(["inspect", &f16, "--json", "--arrays"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_legacy_file_is_detected() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
        return;
    };
    let (dir, old) = (Dir::new(), data.join("legacy/llama/ggml-q4_0.bin"));
    let (old, out) = (old.to_str().unwrap(), dir.path("model.gguf"));

    let plan = json(&succeeds(&["convert", old, "-o", &out, "--dry-run", "--json"]));
    assert_eq!(plan["changes"][0]["from"], "Q4_0 (version 0)");
    assert_eq!(plan["changes"][0]["to"], "F32");
    assert_eq!(plan["changes"][0]["how"], "lossless");

    let eps = ["--eps", "1e-5", "--context-length", "512"];
    succeeds(&[&["convert", old, "-o", &out, "--outtype", "q4_0"], &eps[..]].concat());
    let shown = succeeds(&["inspect", &out]);
    assert!(shown.contains("converted from legacy GGMLv1 MOSTLY_Q4_0 format"), "{shown}");
    assert!(shown.contains("512 tokens"), "{shown}");
    succeeds(&["check", &out]);

    fails(&["convert", &out], 2, &["is a GGUF already", "`copy`"]);
    fails(
        &["convert", old, "-o", &out, "--architecture", "rwkv"],
        2,
        &["supported architectures: llama"],
    );
    fails(&["convert", old, "-o", &out, "--head-count", "7"], 2, &["correct --head-count"]);
}

#[test]
fn a_missing_tensor_is_an_input_error() {
    let dir = Dir::new();
    let (empty, out) = (dir.path("empty"), dir.path("out.gguf"));
    std::fs::create_dir(&empty).unwrap();
    for name in ["config.json", "tokenizer.model"] {
        std::fs::copy(format!("{MODEL}/{name}"), format!("{empty}/{name}")).unwrap();
    }
    let weights = format!("{empty}/model.safetensors");
    std::fs::write(&weights, b"\x02\0\0\0\0\0\0\0{}").unwrap();
    fails(&["convert", &empty, "-o", &out], 1, &[&empty, "contains no model weights"]);
    let lone = ["convert", &weights, "--architecture", "mine", "-o", &out];
    fails(&lone, 1, &[&weights, "contains no model weights"]);
    assert!(!Path::new(&out).exists());
}

#[test]
fn export_of_a_broken_vocabulary_is_an_input_error() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("checkpoint"));
    succeeds(&["edit", &f16, "--force", "--set", "tokenizer.ggml.tokens:u32[]=[1,2]"]);
    fails(&["export", &f16, &out], 1, &["the vocabulary has no texts"]);
    assert!(!Path::new(&out).exists());
}

/// Missing metadata is an input error.
#[test]
fn export_without_required_keys_is_an_input_error() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("checkpoint"));
    succeeds(&["edit", &f16, "--force", "--remove", "llama.attention.head_count"]);
    let output = gguf(&["export", &f16, &out]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for part in [f16.as_str(), "`num_attention_heads` (the number of heads)", "`gguf check`"] {
        assert!(stderr.contains(part), "`{part}` is not in: {stderr}");
    }
    assert!(!stderr.contains("config.json"), "{stderr}");
    assert!(!Path::new(&out).exists());
}

#[test]
fn a_model_without_tokens_is_exported_without_a_tokenizer() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("checkpoint"));
    let no_tokens = ["--force", "--remove", "tokenizer.ggml.tokens"];
    succeeds(&[&["edit", f16.as_str()], &no_tokens[..]].concat());
    fails(&["export", &f16, &out], 1, &["the vocabulary has no texts"]);
    let no_tokenizer = ["--remove", "tokenizer.ggml.model", "--remove", "llama.vocab_size"];
    succeeds(&[&["edit", &f16, "--force"], &no_tokenizer[..]].concat());
    let output = gguf(&["export", &f16, &out]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.contains("the file has no tokenizer"), "{stderr}");
    let config = std::fs::read_to_string(format!("{out}/config.json")).unwrap();
    // Number of embedding rows.
    assert_eq!(json(&config)["vocab_size"], 2048);
}
