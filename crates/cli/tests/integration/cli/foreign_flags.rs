//! Flags of other programs.

use crate::cli::support::{Dir, fails, succeeds};

#[test]
fn flags_of_other_programs_get_a_tip() {
    fails(&["bench", "-m", "x.gguf"], 2, &["'-m'", "positional argument"]);
    fails(&["generate", "--model", "x.gguf"], 2, &["'--model'", "positional argument"]);
    fails(&["generate", "x.gguf", "-ngl", "99"], 2, &["on the CPU"]);
    fails(&["quantize", "a.gguf", "Q4_0", "-o", "b.gguf"], 2, &["'-o'", "second argument"]);
}

#[test]
fn threads_are_a_flag_or_the_last_argument() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("o.gguf"));
    succeeds(&["quantize", &f16, &out, "q8_0", "--threads", "1"]);
    let named = std::fs::read(&out).unwrap();
    succeeds(&["quantize", "--force", &f16, &out, "q8_0", "1"]);
    assert_eq!(std::fs::read(&out).unwrap(), named);
    fails(&["quantize", &f16, &out, "q8_0", "1", "-t", "2"], 2, &["given twice"]);
}

#[test]
fn a_tensor_changed_twice_counts_once() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let graft = format!("{f16}:blk.2.attn_q");
    let words = ["edit", &f16, "--dry-run", "--graft", &graft, "--rename-tensor"];
    let renamed = [&words[..], &["blk.2.attn_q.weight=other"]].concat();
    let shown = succeeds(&renamed);
    assert!(shown.starts_with("1 tensor would change\n"), "{shown}");
}
