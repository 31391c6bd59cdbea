//! Flags of other programs.

use crate::cli::support::{Dir, fails, gguf, json, succeeds};

#[test]
fn flags_of_other_programs_get_a_tip() {
    fails(&["bench", "-m", "x.gguf"], 3, &["cannot open x.gguf"]);
    fails(&["graph", "-m", "x.gguf"], 2, &["'-m'", "first argument"]);
    fails(&["split", "-m", "x.gguf", "out"], 2, &["'-m'", "first argument"]);
    fails(&["generate", "x.gguf", "-hff", "y"], 2, &["'-hff'", "hf:org/repo:TYPE"]);
    fails(&["inspect", "-hx"], 2, &["unexpected argument '-hx'"]);
    fails(&["generate", "x.gguf", "-md", "y"], 3, &["cannot open x.gguf"]);
    fails(&["generate", "x.gguf", "--draft-p-min", "0.9"], 3, &["measured acceptance and speed"]);
    fails(&["generate", "x.gguf", "--xtc-probability", "1"], 2, &["no such sampler"]);
    fails(&["logits", "x.gguf", "--n-cpu-moe", "1", "-p", "a", "-o", "y"], 3, &["has no effect"]);
    fails(
        &["generate", "x.gguf", "-p", "a", "-ngl", "99"],
        3,
        &["run on the CPU", "cannot open x.gguf"],
    );
    fails(&["generate", "x.gguf", "--json-schema", "{}"], 2, &["llama.cpp's llama-cli can"]);
    fails(&["convert", "x", "--type", "q8_0"], 2, &["--outtype q4_k_m"]);
}

/// Each pair of command lines does the same.
#[test]
fn flags_of_llama_cli_are_translated() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let own = |words: &[&str]| succeeds(&[words, &["--temp", "0", "-n", "5"]].concat());
    let expected = own(&["generate", &f16, "-p", "In the beginning"]);
    assert_eq!(own(&["generate", "-m", &f16, "-p", "In the beginning", "-ngl", "99"]), expected);
    assert_eq!(own(&["llama-cli", "-m", &f16, "In", "the", "beginning", "--seed", "-1"]), expected);
    assert_eq!(own(&["run", &f16, "In the beginning", "-fa", "on", "-st", "-no-cnv"]), expected);
    let after = ["generate", &f16, "--temp", "0", "-n", "5", "--", "In the beginning"];
    assert_eq!(succeeds(&after), expected);
    // Texts may look like flags.
    let minus = own(&["generate", &f16, "-p", "-ngl"]);
    assert_eq!(minus, own(&["generate", &f16, "--prompt=-ngl"]));
    let all = ["generate", &f16, "-p", "a", "--temp", "0", "--json", "-c", "40", "--ignore-eos"];
    let unlimited = json(&succeeds(&[&all[..], &["-n", "-1"]].concat()));
    assert_eq!(unlimited["ids"], json(&succeeds(&all))["ids"]);
}

/// Outputs may be named with -o where they are arguments.
#[test]
fn outputs_may_be_flags() {
    let dir = Dir::new();
    let (f16, path) = (dir.f16(), |name: &str| dir.path(name));
    let bytes = |name: &str| std::fs::read(path(name)).unwrap();
    succeeds(&["quantize", &f16, &path("a.gguf"), "q8_0"]);
    succeeds(&["quantize", &f16, "-o", &path("b.gguf"), "q8_0", "1"]);
    assert_eq!(bytes("a.gguf"), bytes("b.gguf"));
    succeeds(&["split", "-o", &path("part"), &path("a.gguf"), "--split-max-tensors", "20"]);
    succeeds(&["merge", "-o", &path("c.gguf"), &path("part-00001-of-00002.gguf")]);
    assert_eq!(bytes("a.gguf"), bytes("c.gguf"));
    let twice = ["quantize", &f16, &path("d.gguf"), "q8_0", "-o", &path("e.gguf")];
    fails(&twice, 2, &["expected IN [OUT] TYPE"]);
    let several = ["quantize", &f16, "--out", "q8_0=x.gguf", "-o", "y.gguf"];
    fails(&several, 2, &["cannot be used with"]);
}

#[test]
fn guesses_at_commands_get_an_answer() {
    for (guess, tip) in [
        ("download", "gguf pull hf:org/repo"),
        ("serve", "llama-server"),
        ("publish", "gguf upload"),
        ("models", "gguf list"),
        ("hf:org/repo", "gguf inspect hf:org/repo"),
    ] {
        fails(&[guess], 2, &[tip]);
    }
    let unknown = gguf(&["nosuch"]);
    assert!(!String::from_utf8(unknown.stderr).unwrap().contains("tip:"));
    fails(&["quantise"], 2, &["'quantize'"]);
    assert!(succeeds(&["version"]).starts_with("gguf "));
    fails(&["validate", "x.gguf"], 3, &["x.gguf"]);
}

#[test]
fn numbers_are_explained_in_words() {
    for (words, part) in [
        (&["quantize", "a.gguf", "b.gguf", "q8_0", "-t", "two"][..], "expected a whole number"),
        (&["imatrix", "-m", "a.gguf", "-f", "x", "-o", "y", "--ctx-size", "0"], "at least 1"),
        (&["generate", "a.gguf", "-p", "a", "--temp", "x"], "expected a number"),
        (&["generate", "a.gguf", "-p", "a", "-n", "99999999999999999999999"], "too large"),
    ] {
        fails(words, 2, &[part]);
    }
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
