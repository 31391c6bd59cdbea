//! `gguf convert` with models from before GGUF.

mod support;

use std::path::PathBuf;

use support::{Dir, fails, json, succeeds};

fn data() -> Option<PathBuf> {
    let dir = std::env::var_os("GGUF_TEST_DATA").map(|dir| PathBuf::from(dir).join("legacy"));
    if dir.is_none() {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
    }
    dir
}

#[test]
fn an_old_file_is_recognised() {
    let Some(data) = data() else { return };
    let (dir, old) = (Dir::new(), data.join("llama/ggml-q4_0.bin"));
    let (old, out) = (old.to_str().unwrap(), dir.path("model.gguf"));

    let plan = json(&succeeds(&["convert", old, "-o", &out, "--dry-run", "--json"]));
    assert_eq!(plan["changes"][0]["from"], "Q4_0 of generation 0");
    assert_eq!(plan["changes"][0]["to"], "F32");
    assert_eq!(plan["changes"][0]["how"], "exactly");

    let eps = ["--eps", "1e-5", "--context-length", "512"];
    succeeds(&[&["convert", old, "-o", &out, "--outtype", "q4_0"], &eps[..]].concat());
    let shown = succeeds(&["inspect", &out]);
    assert!(shown.contains("converted from legacy GGMLv1 MOSTLY_Q4_0 format"), "{shown}");
    assert!(shown.contains("512 tokens"), "{shown}");
    succeeds(&["check", &out]);

    // Other commands name the file's fault; wrong flags are the user's.
    fails(&["convert", old, "-o", &out, "--architecture", "rwkv"], 2, &["known are llama"]);
    fails(&["convert", old, "-o", &out, "--head-count", "7"], 2, &["correct --head-count"]);
}
