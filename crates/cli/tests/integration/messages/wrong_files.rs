//! Files of the wrong kind, in the place of the model and of every flag that takes a file.

use std::any::TypeId;
use std::fs;
use std::path::{Path, PathBuf};

use super::provoked::{faults, leaves, run_all};
use crate::transcripts::session::{MODEL, Session};

/// Words after the model that let a command get as far as to read it.
const MORE: &[(&str, &[&str])] = &[
    ("bench", &["-p", "1", "-n", "1", "-r", "1"]),
    ("chat", &["-p", "a"]),
    ("convert", &["-o", "out.gguf", "--force"]),
    ("convert-endian", &["big", "-o", "out.gguf", "--force"]),
    ("detokenize", &["1"]),
    ("diff", &["m.gguf"]),
    ("divergence", &["m.gguf", "-f", "text.txt"]),
    ("edit", &["--set", "general.name=x", "-o", "out.gguf", "--force"]),
    ("embed", &["-p", "a"]),
    ("export", &["out", "--force"]),
    ("generate", &["-p", "a", "-n", "1"]),
    ("imatrix", &["-f", "text.txt", "-o", "out.gguf", "--force"]),
    ("logits", &["-p", "a", "-o", "out.npy", "--force"]),
    ("lora check", &["m.gguf"]),
    ("lora merge", &["m.gguf", "-o", "out.gguf"]),
    ("merge", &["out.gguf", "--force"]),
    ("perplexity", &["-f", "text.txt"]),
    ("quality", &["-f", "text.txt", "--types", "q8_0", "--no-speed"]),
    ("quantize", &["out.gguf", "q8_0", "--force"]),
    ("sensitivity", &["-f", "text.txt"]),
    ("split", &["out", "--split-max-tensors", "20", "--dry-run"]),
    ("tokenize", &["a"]),
    ("transcribe", &["text.txt"]),
    ("verify", &["--source", "m.gguf"]),
    ("view", &["--export", "out.html"]),
];

/// Commands that take no model.
const WITHOUT_MODEL: &[&str] =
    &["completions", "demo", "help", "links", "list", "man", "pull", "rm"];

/// Writes files that are no models, and a short text.
fn wrong_files(directory: &Path) -> Vec<String> {
    let files: [(&str, &[u8]); 9] = [
        ("empty.gguf", b""),
        ("page.gguf", b"<!DOCTYPE html>\n<html>404</html>\n"),
        ("error.gguf", b"{\"error\":\"Invalid credentials in Authorization header\"}"),
        ("pointer.gguf", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n"),
        ("archive.gguf", b"PK\x03\x04\x14\0\0\0\0\0"),
        ("packed.gguf", b"\x1f\x8b\x08\0\0\0\0\0"),
        ("random.gguf", b"\x8f\x01\xe2\x9c\x07\xff\xfe\x00\x80\x81"),
        ("broken.json", b"{\"messages\": [{\"role\": "),
        ("a.safetensors", b"\x10\0\0\0\0\0\0\0{\"a\": "),
    ];
    let mut names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
    for (name, bytes) in files {
        fs::write(directory.join(name), bytes).unwrap();
    }
    let model = fs::read(directory.join("m.gguf")).unwrap();
    fs::write(directory.join("cut.gguf"), &model[..2_000_000]).unwrap();
    fs::write(directory.join("header.gguf"), &model[..20_000]).unwrap();
    fs::create_dir(directory.join("directory")).unwrap();
    fs::create_dir(directory.join("checkpoint")).unwrap();
    for name in ["config.json", "tokenizer.model"] {
        fs::copy(Path::new(MODEL).join(name), directory.join("checkpoint").join(name)).unwrap();
    }
    fs::create_dir(directory.join("broken")).unwrap();
    fs::write(directory.join("broken/config.json"), "{\"architectures\": [").unwrap();
    for name in [
        "cut.gguf",
        "header.gguf",
        "directory",
        "checkpoint",
        "broken",
        "missing.gguf",
        "m.gguf/x",
        "/dev/null",
        "-",
        "ftp://host/m.gguf",
        "https://no-such-host.invalid/m.gguf",
        "hf:org/repo",
        "org/repo",
    ] {
        names.push(name.to_owned());
    }
    fs::write(directory.join("text.txt"), "In the beginning").unwrap();
    names
}

fn more(command: &str) -> impl Iterator<Item = String> {
    let row = MORE.iter().find(|(name, _)| *name == command);
    row.map_or(&[][..], |(_, words)| words).iter().map(|word| (*word).to_owned())
}

#[test]
fn wrong_files_in_the_place_of_a_model_are_explained() {
    let session = Session::new();
    let directory = session.path("");
    let names = wrong_files(&directory);
    let mut lines = Vec::new();
    for leaf in leaves() {
        let command = leaf.name();
        if WITHOUT_MODEL.contains(&&*command) {
            continue;
        }
        for name in &names {
            let words = leaf.words.iter().cloned().chain([name.clone()]).chain(more(&command));
            lines.push(words.collect());
        }
    }
    assert!(lines.len() > 400, "{} lines", lines.len());
    run_all(&directory, &lines, faults);
}

/// Unreadable or wrong files of all flags that take a path.
#[test]
fn wrong_files_of_every_flag_are_explained() {
    let session = Session::new();
    let directory = session.path("");
    wrong_files(&directory);
    let mut lines = Vec::new();
    for leaf in leaves() {
        let command = leaf.name();
        if WITHOUT_MODEL.contains(&&*command) {
            continue;
        }
        for (arg, flag) in leaf.flags_with_values() {
            if arg.get_value_parser().type_id() != TypeId::of::<PathBuf>() {
                continue;
            }
            for name in ["missing", "directory", "random.gguf", "broken.json", "text.txt/x"] {
                let model = ["m.gguf".to_owned()].into_iter().chain(more(&command));
                let words = leaf.words.iter().cloned().chain(model);
                lines.push(words.chain([format!("{flag}={name}")]).collect());
            }
        }
    }
    assert!(lines.len() > 150, "{} lines", lines.len());
    run_all(&directory, &lines, faults);
}
