//! Options shared by `gguf convert` and `gguf quantize`: several outputs, shards, resuming.

use std::fs::{self, read};
use std::path::Path;
use std::process::Command;

use crate::cli::support::{Dir, MODEL, fails, gguf, json, succeeds};

fn names(dir: &str) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn several_outputs_equal_single_runs() {
    let dir = Dir::new();
    let (one, two, all) = (dir.path("one.gguf"), dir.path("two.gguf"), dir.path("all"));
    succeeds(&["convert", MODEL, "-o", &one, "--outtype", "q8_0"]);
    succeeds(&["convert", MODEL, "-o", &two, "--outtype", "q4_k_m", "--threads", "1"]);
    fs::create_dir(&all).unwrap();
    let both = ["convert", MODEL, "-o", &all, "--outtype", "q8_0,q4_k_m"];
    succeeds(&both);
    let [q4, q8] = ["Q4_K_M", "Q8_0"].map(|ty| format!("Tiny-KJV-Llama-4M-{ty}.gguf"));
    assert_eq!(names(&all), [q4.as_str(), q8.as_str()]);
    assert!(read(format!("{all}/{q8}")).unwrap() == read(&one).unwrap());
    assert!(read(format!("{all}/{q4}")).unwrap() == read(&two).unwrap());
    // Existing files are not overwritten.
    fails(&both, 2, &["Q8_0.gguf exists already"]);
    let (a, b) = (dir.path("a.gguf"), dir.path("b.gguf"));
    let out = [format!("q8_0={a}"), format!("q4_k_m={b}")];
    succeeds(&["convert", MODEL, "--out", &out[0], "--out", &out[1]]);
    assert!(read(&a).unwrap() == read(&one).unwrap() && read(&b).unwrap() == read(&two).unwrap());
    fails(
        &["convert", MODEL, "-o", &one, "--outtype", "q8_0,f16", "--force"],
        2,
        &["not a directory"],
    );
    fails(&["convert", MODEL, "--out", &out[0], "--out", &out[0], "--force"], 2, &["named twice"]);
    fails(&["convert", MODEL, "--out", &out[0], "-o", &one], 2, &["--out"]);
    fails(&["convert", MODEL, "-o", &all, "--outtype", "f16,F16"], 2, &["named twice"]);
    assert_eq!(names(&all).len(), 2);
}

/// The names of several outputs of `ggml-model-f16.bin` differ.
#[test]
fn legacy_outputs_are_named_by_type() {
    let dir = Dir::new();
    let old = crate::legacy_files::llama(
        crate::legacy_files::GGJT,
        Some(3),
        64,
        crate::legacy_files::plain,
    );
    let source = dir.path("model-f32.bin");
    fs::write(&source, old.bytes).unwrap();
    let mut convert = Command::new(env!("CARGO_BIN_EXE_gguf"));
    convert.args(["convert", &source, "--outtype", "auto,q8_0,f16"]).current_dir(dir.path(""));
    assert!(convert.status().unwrap().success());
    let result = ["model-66K-F16.gguf", "model-66K-Q4_0.gguf", "model-66K-Q8_0.gguf"];
    assert_eq!(names(&dir.path("")), [&result[..], &["model-f32.bin"]].concat());
    for name in result {
        succeeds(&["name", name]);
    }
}

#[test]
fn shards_equal_the_whole() {
    let dir = Dir::new();
    let (whole, merged) = (dir.path("whole.gguf"), dir.path("merged.gguf"));
    succeeds(&["convert", MODEL, "-o", &whole, "--outtype", "q8_0"]);
    for (number, flags) in [
        &["--split-max-tensors", "20"][..],
        &["--split-max-size", "3M"],
        &["--split-max-tensors", "20", "--no-tensor-first-split"],
        &["--no-tensor-first-split"],
    ]
    .iter()
    .enumerate()
    {
        let result = dir.path(&format!("made-{number}"));
        fs::create_dir(&result).unwrap();
        let out = format!("{result}/m.gguf");
        succeeds(&[&["convert", MODEL, "-o", &out, "--outtype", "q8_0"], *flags].concat());
        let shards = names(&result);
        assert_eq!(shards.len(), if number == 2 { 3 } else { 2 }, "{flags:?}: {shards:?}");
        let first = format!("{result}/{}", shards[0]);
        let shown = json(&succeeds(&["inspect", &first, "--json"]));
        let in_first = shown["tensors"].as_array().unwrap().iter().filter(|t| t["shard"] == 1);
        assert_eq!(in_first.count() == 0, flags.contains(&"--no-tensor-first-split"), "{flags:?}");
        succeeds(&["merge", &first, &merged, "--force"]);
        assert!(read(&merged).unwrap() == read(&whole).unwrap(), "{flags:?}");
    }
    // Equal to the shards of `llama-gguf-split` and `gguf quantize`; those of `gguf split` have a fingerprint.
    let f16 = dir.f16();
    succeeds(&["llama-gguf-split", "--split-max-size", "3M", &whole, &dir.path("split")]);
    let size = ["--split-max-size", "3M"];
    succeeds(&[&["quantize", &f16, &dir.path("quantized.gguf"), "q8_0"], &size[..]].concat());
    for number in ["00001", "00002"] {
        let name = format!("-{number}-of-00002.gguf");
        let of_convert = read(dir.path(&format!("made-1/m{name}"))).unwrap();
        assert!(read(dir.path(&format!("split{name}"))).unwrap() == of_convert);
        // There the tensor order differs.
        assert!(Path::new(&dir.path(&format!("quantized{name}"))).is_file());
    }
    // A single shard keeps the output name.
    let one = dir.path("one.gguf");
    succeeds(&["convert", MODEL, "-o", &one, "--outtype", "q8_0", "--split-max-size", "1G"]);
    assert!(read(&one).unwrap() == read(&whole).unwrap());
    let words = ["quantize", &f16, &one, "q8_0", "--part", "1/2", "--split-max-tensors", "3"];
    fails(&words, 2, &["--part", "--split-max-tensors"]);
}

#[test]
fn bigendian_equals_convert_endian() {
    let dir = Dir::new();
    let (little, big, swapped) = (dir.path("l.gguf"), dir.path("b.gguf"), dir.path("s.gguf"));
    for outtype in ["f16", "q4_k_m"] {
        let common = ["convert", MODEL, "--force", "--outtype", outtype, "-o"];
        succeeds(&[&common[..], &[&little]].concat());
        succeeds(&[&common[..], &[&big, "--bigendian"]].concat());
        succeeds(&["convert-endian", &little, "big", "-o", &swapped, "--force"]);
        assert!(read(&big).unwrap() == read(&swapped).unwrap(), "{outtype}");
    }
}

#[test]
fn a_vocabulary_needs_no_weights() {
    let dir = Dir::new();
    let (small, named, out) = (dir.path("small"), dir.path("named"), dir.path("out.gguf"));
    fs::create_dir(&small).unwrap();
    fs::create_dir(&named).unwrap();
    for entry in fs::read_dir(MODEL).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "safetensors") {
            fs::copy(&path, Path::new(&small).join(path.file_name().unwrap())).unwrap();
        }
    }
    succeeds(&["convert", &small, "--vocab-only", "-o", &out, "--model-name", "Tiny"]);
    let shown = json(&succeeds(&["inspect", &out, "--json"]));
    assert_eq!((&shown["tensor_count"], &shown["tokenizer"]["tokens"]), (&0.into(), &2048.into()));
    let ids = |model: &str| succeeds(&["tokenize", model, "-p", "In the beginning", "--ids"]);
    assert_eq!(ids(&out), ids(MODEL));
    succeeds(&["convert", &small, "--vocab-only", "-o", &named, "--model-name", "Tiny"]);
    assert_eq!(names(&named), ["Tiny-vocab.gguf"]);
    fails(&["convert", &small, "-o", &out, "--force"], 1, &["small: has neither safetensors"]);
}

#[test]
fn supported_models_are_listed_without_a_source() {
    let listed = succeeds(&["convert", "--print-supported-models"]);
    let rows = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let (classes, architectures): (Vec<_>, Vec<_>) = rows.map(|row| (row[0], row[1])).unzip();
    assert!(classes.len() > 80, "{listed}");
    let llama = classes.iter().position(|class| *class == "LlamaForCausalLM").unwrap();
    assert_eq!(architectures[llama], "llama");
    assert!(classes.is_sorted());
    fails(&["convert", MODEL, "--print-supported-models"], 2, &["--print-supported-models"]);
    fails(&["convert"], 2, &["<SOURCE>"]);
}

/// Returns a checkpoint with a minimal vision encoder: its layers have one norm.
fn vision_checkpoint(dir: &Dir) -> String {
    let path = dir.path("vision_checkpoint");
    fs::create_dir(&path).unwrap();
    let config = r#"{"architectures": ["Unknown"], "text_config": {"hidden_size": 64},
        "vision_config": {"architectures": ["KimiVLForConditionalGeneration"], "hidden_size": 4,
            "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "patch_size": 2}}"#;
    fs::write(format!("{path}/config.json"), config).unwrap();
    let prepared = r#"{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}"#;
    fs::write(format!("{path}/preprocessor_config.json"), prepared).unwrap();
    let header = r#"{"vision_tower.encoder.blocks.0.norm0.weight":
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}"#;
    let mut weights = (header.len() as u64).to_le_bytes().to_vec();
    weights.extend(header.bytes());
    weights.extend([0; 16]);
    fs::write(format!("{path}/model.safetensors"), weights).unwrap();
    path
}

#[test]
fn draft_models_use_the_target_tokenizer() {
    let dir = Dir::new();
    let (draft, out) = (dir.path("draft"), dir.path("draft.gguf"));
    fs::create_dir(&draft).unwrap();
    let config = r#"{"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 64,
        "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 2048,
        "draft_vocab_size": 2048, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
        "eagle_aux_hidden_state_layer_ids": [0, 1, 2], "target_hidden_size": 64}"#;
    fs::write(format!("{draft}/config.json"), config).unwrap();
    let alone = ["convert", &draft, "--vocab-only", "-o", &out];
    fails(&alone, 1, &["`LlamaForCausalLMEagle3` is a draft", "--target-model-dir"]);
    succeeds(&[&alone[..], &["--target-model-dir", MODEL]].concat());
    let shown = json(&succeeds(&["inspect", &out, "--json"]));
    assert_eq!(shown["architecture"], "eagle3");
    let other = ["convert", MODEL, "--dry-run", "--target-model-dir", MODEL];
    fails(&other, 2, &["is no draft", "leave --target-model-dir out"]);
}

#[test]
fn mmproj_files_are_checked_against_models() {
    let dir = Dir::new();
    let (source, out) = (vision_checkpoint(&dir), dir.path("mmproj-vision_checkpoint.gguf"));
    succeeds(&["convert", &source, "--mmproj", "-o", &out, "--outtype", "f16"]);
    let shown = json(&succeeds(&["inspect", &out, "--json"]));
    assert_eq!(shown["tensor_count"], 1);
    fails(&["convert", MODEL, "--mmproj", "--dry-run"], 1, &["no vision or audio encoder"]);
    fails(&["convert", &source, "--mmproj", "--vocab-only"], 2, &["--mmproj"]);
    let with = |model: &str, sidecar: &str| {
        let output = gguf(&["check", model, "--mmproj", sidecar, "--json"]);
        assert_eq!(output.status.code(), Some(1));
        let shown = json(&String::from_utf8(output.stdout).unwrap());
        let findings = shown["findings"].as_array().unwrap().iter();
        let codes = findings.map(|one| one["code"].as_str().unwrap().to_owned());
        codes.filter(|code| code.starts_with("sidecar-")).collect::<Vec<_>>()
    };
    // The model has embedding size 256, the projector 64.
    assert_eq!(with(&dir.f16(), &out), ["sidecar-width"]);
    assert_eq!(with(&dir.f16(), &dir.f16()), ["sidecar-kind"]);
}

/// `--resume` starts over if the progress is of another conversion.
#[test]
fn resume_requires_the_same_command() {
    let dir = Dir::new();
    let (out, whole) = (dir.path("out.gguf"), dir.path("whole.gguf"));
    let work = |out: &str, more: &[&str]| {
        gguf(&[&["convert", MODEL, "-o", out, "--outtype", "q8_0", "--resume"], more].concat())
    };
    assert!(work(&whole, &[]).status.success());
    let unfinished = dir.path(".out.gguf.unfinished.gguf-kit-part");
    fs::write(&unfinished, b"the work of something else").unwrap();
    let done = work(&out, &[]);
    let output_text = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success() && output_text.contains("starting over"), "{output_text}");
    assert!(read(&out).unwrap() == read(&whole).unwrap());
    assert!(!Path::new(&unfinished).exists());
}
