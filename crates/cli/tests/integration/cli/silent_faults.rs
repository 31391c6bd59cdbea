//! Faults that once passed without a word: wrong results, lost outputs, and secrets in what is printed.

use std::fs;
use std::process::{Command, Stdio};

use gguf::{NameShard, TensorType};

use super::file_operations::serve;
use super::limits::changed;
#[cfg(unix)]
use crate::cli::support::MODEL;
use crate::cli::support::{Dir, fails, gguf, other_weights, succeeds};

fn stderr(args: &[&str]) -> String {
    String::from_utf8(gguf(args).stderr).unwrap()
}

#[test]
fn scales_that_overflow_are_refused() {
    let dir = Dir::new();
    let model = changed(&dir, |header, data| {
        let at = header.tensors.iter().position(|tensor| tensor.name.contains("ffn_up")).unwrap();
        header.tensors[at].tensor_type = TensorType::F32;
        let elements = header.tensors[at].shape.elements().unwrap() as usize;
        data[at] = vec![0.5f32; elements].into_iter().flat_map(f32::to_le_bytes).collect();
        // Row 2, column 7.
        let columns = header.tensors[at].shape.row_len() as usize;
        let place = 4 * (2 * columns + 7);
        data[at][place..place + 4].copy_from_slice(&1e9f32.to_le_bytes());
    });
    let out = dir.path("out.gguf");
    for target in ["q8_0", "q4_0", "q4_k", "iq4_nl", "q2_k", "tq2_0", "f16"] {
        let words = ["quantize", &model, &out, target, "--pure"];
        fails(&words, 1, &["ffn_up.weight", "row 2, column", "is too large for", "bf16 or f32"]);
        assert!(!fs::exists(&out).unwrap(), "{target}");
    }
    succeeds(&["quantize", &model, &out, "bf16", "--pure"]);
}

#[test]
fn an_importance_matrix_resumes_only_its_own_run() {
    let dir = Dir::new();
    let (model, out) = (dir.f16(), dir.path("i.gguf"));
    let (text, other) = (dir.path("text.txt"), dir.path("other.txt"));
    let verse = |words: &str| words.repeat(1200);
    fs::write(&text, verse("In the beginning was the word. ")).unwrap();
    fs::write(&other, verse("And the light shineth in the darkness. ")).unwrap();
    let run = |text: &str, chunks: &str, more: &[&str]| {
        let words = ["imatrix", &model, "-f", text, "-o", &out, "-c", "64", "--chunks", chunks];
        gguf(&[&words[..], &["--output-frequency", "1"], more].concat())
    };
    // The file of an unfinished run: that after the first of its chunks.
    let mut unfinished = Command::new(env!("CARGO_BIN_EXE_gguf"))
        .args(["imatrix", &model, "-f", &text, "-o", &out, "-c", "64", "--output-frequency", "1"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !fs::exists(&out).unwrap() {
        assert!(unfinished.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    unfinished.kill().unwrap();
    unfinished.wait().unwrap();
    let kept = fs::read(&out).unwrap();
    let refused = run(&other, "90", &["--resume"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("another model or text"), "{message}");
    assert!(fs::read(&out).unwrap() == kept);
    assert!(run(&text, "90", &["--resume"]).status.success());
    assert!(run(&text, "95", &["--resume"]).status.success());
    // That of llama.cpp's tool does not say how it was made.
    succeeds(&["edit", &out, "--remove", "gguf_kit.imatrix.fingerprint"]);
    let again = run(&text, "99", &["--resume"]);
    assert!(String::from_utf8(again.stderr).unwrap().contains("does not say"));
}

#[test]
fn two_runs_do_not_share_an_output() {
    let dir = Dir::new();
    let (model, out, text) = (dir.f16(), dir.path("i.gguf"), dir.path("text.txt"));
    fs::write(&text, "In the beginning was the word. ".repeat(400)).unwrap();
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_gguf"))
            .args(["imatrix", &model, "-f", &text, "-o", &out, "-c", "64", "--chunks", "8"])
            .args(["--output-frequency", "1"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let ended = [start(), start()].map(|mut run| run.wait().unwrap().code().unwrap());
    assert!(ended == [0, 2] || ended == [2, 0], "{ended:?}");
}

#[test]
fn more_threads_than_are_useful_are_not_started() {
    let dir = Dir::new();
    let model = dir.f16();
    let words = ["generate", &model, "-p", "a", "-n", "1", "--temp", "0", "-t"];
    let message = stderr(&[&words[..], &["1000000"]].concat());
    assert!(message.contains("threads instead of 1000000"), "{message}");
    assert_eq!(stderr(&[&words[..], &["1"]].concat()), "");
}

#[test]
fn a_remote_name_alone_opens_no_shards() {
    let dir = Dir::new();
    let address = serve(fs::read(dir.f16()).unwrap());
    let name = NameShard { number: 1, count: 99_999 }.file_name("model");
    let address = address.replace("model.gguf", &name);
    fails(&["inspect", &address], 1, &["split.count", "the name says 99999 shards"]);
}

#[test]
fn shards_of_different_models_do_not_merge() {
    let dir = Dir::new();
    let other = other_weights(&dir);
    let (prefix, mixed) = (dir.path("a"), dir.path("b"));
    for (model, prefix) in [(&dir.path("f16.gguf"), &prefix), (&other, &mixed)] {
        succeeds(&["split", model, prefix, "--split-max-tensors", "20"]);
    }
    let shard = |prefix: &str, number: u32| format!("{prefix}-0000{number}-of-00002.gguf");
    let merged = dir.path("merged.gguf");
    succeeds(&["merge", &shard(&prefix, 1), &merged]);
    succeeds(&["diff", &dir.path("f16.gguf"), &merged]);
    fs::copy(shard(&mixed, 2), shard(&prefix, 2)).unwrap();
    fails(&["merge", &shard(&prefix, 1), &dir.path("wrong.gguf")], 1, &["another input"]);
    assert!(
        String::from_utf8(gguf(&["check", &shard(&prefix, 1)]).stdout)
            .unwrap()
            .contains("shard-other-work")
    );
}

#[test]
fn secrets_of_addresses_are_not_printed() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let address = serve(fs::read(&f16).unwrap());
    let secret = format!("{address}?X-Amz-Signature=SECRET&token=SECRET#SECRET");
    let (page, text) = (dir.path("page.html"), dir.path("text.txt"));
    fs::write(&text, "In the beginning was the word. ".repeat(20)).unwrap();
    let evaluated = ["-f", &text, "-c", "32", "--chunks", "1"];
    let (part, saved) = (dir.path("a.part"), dir.path("s.json"));
    let commands: [&[&str]; 9] = [
        &["inspect", &secret],
        &["inspect", &secret, "--json"],
        &["inspect", &secret, "--sbom"],
        &["hash", &secret, "--json"],
        &["check", &secret, "--json"],
        &["diff", &secret, &f16],
        &["view", &secret, "--export", &page],
        &[&["perplexity", &secret, "-o", &part][..], &evaluated].concat(),
        &[
            &["sensitivity", &secret, "-o", &saved, "--by", "role", "--types", "q4_0"][..],
            &evaluated,
        ]
        .concat(),
    ];
    for words in commands {
        let output = gguf(words);
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {text}");
        assert!(!text.contains("SECRET"), "{words:?}: {text}");
    }
    for file in [page, part, saved] {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"SECRET"), "{file}");
    }
}

#[test]
fn a_stored_graph_does_not_outlive_a_change() {
    let dir = Dir::new();
    let (model, stored) = (dir.f16(), dir.path("stored.gguf"));
    let (edited, pruned) = (dir.path("edited.gguf"), dir.path("pruned.gguf"));
    succeeds(&["graph", &model, "--store", "-o", &stored]);
    let has_graph = |path: &str| succeeds(&["inspect", path, "--keys"]).contains("gguf_kit.graph");
    let check = |path: &str| String::from_utf8(gguf(&["check", path]).stdout).unwrap();
    assert!(has_graph(&stored) && !check(&stored).contains("graph-differs"));
    succeeds(&["edit", &stored, "-o", &edited, "--set", "general.name=other"]);
    assert!(has_graph(&edited));
    succeeds(&["edit", &stored, "-o", &edited, "--force", "--set", "llama.rope.freq_base=20000"]);
    assert!(!has_graph(&edited));
    succeeds(&["quantize", &stored, &pruned, "copy", "--prune-layers", "1"]);
    assert!(!has_graph(&pruned));
    // Another program changes the key.
    let mut bytes = fs::read(&stored).unwrap();
    let key = b"llama.rope.freq_base";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len() + 4;
    bytes[at..at + 4].copy_from_slice(&20_000f32.to_le_bytes());
    fs::write(&stored, bytes).unwrap();
    assert!(check(&stored).contains("graph-differs"), "{}", check(&stored));
}

/// A pipe would block until somebody writes to it.
#[test]
#[cfg(unix)]
fn pipes_are_no_models() {
    let dir = Dir::new();
    let folder = dir.path("folder");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(MODEL).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.starts_with("model") {
            fs::copy(&path, format!("{folder}/{name}")).unwrap();
        }
    }
    let pipe = format!("{folder}/model.safetensors");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fails(&["convert", &folder, "-o", &dir.path("out.gguf")], 3, &["a pipe or a device"]);
    fails(&["inspect", &pipe], 3, &["a pipe or a device"]);
}
