//! Findings of `gguf check`, and refused command lines.

use std::fs;

use crate::cli::support::{Dir, fails, gguf, json, succeeds};

/// Returns the exit code, and code and severity of each finding.
fn check(args: &[&str]) -> (i32, Vec<(String, String)>) {
    let output = gguf(&[&["check"], args, &["--json"]].concat());
    let shown = json(&String::from_utf8(output.stdout).unwrap());
    let findings = shown["findings"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let findings = findings.map(|one| (text(&one["code"]), text(&one["severity"]))).collect();
    (output.status.code().unwrap(), findings)
}

fn errors(args: &[&str]) -> Vec<String> {
    let (code, findings) = check(args);
    let errors: Vec<_> =
        findings.into_iter().filter(|one| one.1 == "error").map(|one| one.0).collect();
    assert_eq!(code, i32::from(!errors.is_empty()), "{args:?}: {errors:?}");
    errors
}

#[test]
fn unusable_models_are_errors() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    assert_eq!(errors(&[&f16, "--data"]), [""; 0]);
    for (edit, codes) in [
        (["--remove", "llama.attention.layer_norm_rms_epsilon"], vec!["key-missing"]),
        (["--remove", "tokenizer.ggml.model"], vec!["tokenizer-missing"]),
        (["--drop", "blk.1.ffn_up"], vec!["tensor-missing"]),
        (["--drop", "blk.3."], vec!["layer-count"]),
        // One finding for four layers.
        (["--drop", "ffn_up"], vec!["tensor-missing"]),
        (["--set", "llama.block_count=3"], vec!["layer-count"]),
    ] {
        succeeds(&["edit", &f16, "-o", &out, "--force", edit[0], edit[1]]);
        assert_eq!(errors(&[&out]), codes, "{edit:?}");
        // The data can still be checked.
        assert_eq!(errors(&[&out, "--data"]), codes, "{edit:?}");
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn warnings_are_errors_if_strict() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    assert_eq!(check(&[&f16, "--strict"]).0, 0);
    succeeds(&["edit", &f16, "-o", &out, "--force", "--set", "tokenizer.ggml.bos_token_id=100000"]);
    assert_eq!(errors(&[&out]), [""; 0]);
    assert_eq!(errors(&[&out, "--strict"]), ["token-id-range"]);
    let sarif = gguf(&["check", &out, "--strict", "--sarif"]);
    assert_eq!(sarif.status.code(), Some(1));
    let sarif = json(&String::from_utf8(sarif.stdout).unwrap());
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|one| one["ruleId"] == "token-id-range").unwrap();
    assert_eq!(result["level"], "error");
}

/// Regression: several files were refused with `--sarif`.
#[test]
fn sarif_of_several_files_is_one_log() {
    let dir = Dir::new();
    // Its name is not that of the convention.
    let a = dir.path("my-model.gguf");
    fs::copy(dir.f16(), &a).unwrap();
    let (b, missing) = (dir.path("b.gguf"), dir.path("missing.gguf"));
    fs::write(&b, b"no model").unwrap();
    let output = gguf(&["check", &a, &b, &missing, "--sarif"]);
    assert_eq!(output.status.code(), Some(1));
    let log = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(log["runs"].as_array().unwrap().len(), 1);
    let uri = |one: &serde_json::Value| {
        let place = &one["locations"][0]["physicalLocation"]["artifactLocation"];
        place["uri"].as_str().unwrap().to_owned()
    };
    let results = log["runs"][0]["results"].as_array().unwrap();
    let files: std::collections::BTreeSet<_> = results.iter().map(uri).collect();
    assert_eq!(files.into_iter().collect::<Vec<_>>(), [b.clone(), a.clone()]);
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let failed = invocation["toolExecutionNotifications"].as_array().unwrap();
    assert_eq!(failed.iter().map(uri).collect::<Vec<_>>(), [missing]);
    // One valid file.
    let fine = json(&succeeds(&["check", &a, "--sarif"]));
    assert_eq!(fine["runs"][0]["invocations"][0]["executionSuccessful"], true);
}

#[test]
fn truncation_is_one_finding() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let bytes = fs::read(&f16).unwrap();
    fs::write(&f16, &bytes[..2_000_000]).unwrap();
    assert_eq!(errors(&[&f16, "--data"]), ["truncated"]);
    let text = String::from_utf8(gguf(&["check", &f16]).stdout).unwrap();
    let expected = "2.0 of 8.4 MB are there; 38 of 39 tensors are truncated (byte 2000000)\n  help: the \
                    file is truncated: download or copy it again";
    assert!(text.contains(expected), "{text}");
    fails(&["inspect", &f16], 1, &["2.0 of 8.4 MB are there"]);
}

#[test]
fn shards_are_checked_as_one_model() {
    let dir = Dir::new();
    let (f16, less) = (dir.f16(), dir.path("less.gguf"));
    succeeds(&["edit", &f16, "-o", &less, "--drop", "output_norm"]);
    for (model, prefix, expected) in
        [(&f16, "whole", &[][..]), (&less, "less", &["tensor-missing"])]
    {
        succeeds(&["split", model, &dir.path(prefix), "--split-max-size", "2M"]);
        let second = dir.path(&format!("{prefix}-00002-of-00005.gguf"));
        assert_eq!(errors(&[&second]), expected);
        // A renamed shard is not a model.
        let renamed = dir.path(&format!("{prefix}.gguf"));
        fs::copy(dir.path(&format!("{prefix}-00001-of-00005.gguf")), &renamed).unwrap();
        assert_eq!(errors(&[&renamed]), ["shard-incomplete"]);
    }
    let second = dir.path("whole-00002-of-00005.gguf");
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(errors(&[&second]), ["truncated"]);
}

#[test]
fn fix_keeps_unfixable_findings() {
    let dir = Dir::new();
    let (f16, out, fixed) = (dir.f16(), dir.path("out.gguf"), dir.path("fixed.gguf"));
    let scores = "tokenizer.ggml.scores:f32[]=[0.5]";
    succeeds(&["edit", &f16, "-o", &out, "--force", "--set", scores]);
    succeeds(&["check", &out, "--fix", "-o", &fixed]);
    assert_eq!(errors(&[&fixed]), [""; 0]);
    let worse = dir.path("worse.gguf");
    succeeds(&["edit", &out, "-o", &worse, "--drop", "output_norm"]);
    let fixed = dir.path("still.gguf");
    fails(&["check", &worse, "--fix", "-o", &fixed], 1, &["resized tokenizer.ggml.scores"]);
    assert_eq!(errors(&[&fixed]), ["tensor-missing"]);
}

#[test]
fn invalid_numbers_are_refused() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    let edit = |word: &str, parts: &[&str]| {
        fails(&["edit", &f16, "-o", &out, "--set", word], 2, parts);
        fails(&["edit", &f16, "--set", word], 2, parts);
        fails(&["edit", &f16, "--dry-run", "--set", word], 2, parts);
    };
    edit(
        "llama.rope.freq_base=nan",
        &["`llama.rope.freq_base`: is NaN, not a finite number above 0"],
    );
    edit("general.sampling.temp=-inf", &["is -inf, not a finite number"]);
    for command in [
        vec!["quantize", &f16, &out, "q8_0"],
        vec!["convert", crate::cli::support::MODEL, "-o", &out],
    ] {
        for value in ["nan", "inf", "1e39", "-1"] {
            let word = format!("llama.attention.layer_norm_rms_epsilon=float:{value}");
            fails(&[&command[..], &["--override-kv", &word]].concat(), 2, &["--override-kv"]);
        }
    }
    succeeds(&["edit", &f16, "-o", &out, "--set", "mine:f32=nan"]);
    assert_eq!(errors(&[&out]), [""; 0]);
}

#[test]
fn invalid_sizes_and_counts_are_refused() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    let convert = ["convert", crate::cli::support::MODEL, "-o", &out];
    let quantize = ["quantize", &f16, &out, "q8_0"];
    for size in ["1G", "100G", "99999999T", "99999999999G", "-1", "nan", "0.5"] {
        let reserve = format!("--reserve={size}");
        fails(&["edit", &f16, &reserve, "--set", "general.name=x"], 2, &["--reserve"]);
        fails(&[&convert[..], &[&reserve]].concat(), 2, &["--reserve"]);
        fails(&[&quantize[..], &[&reserve]].concat(), 2, &["--reserve"]);
    }
    fails(&["edit", &f16, "--reserve=1G"], 2, &["at most 128M of padding"]);
    for bits in ["-1", "0", "nan", "inf", "x"] {
        let bits = format!("--target-bpw={bits}");
        fails(&["quantize", &f16, &out, &bits], 2, &["--target-bpw", "is not a positive number"]);
    }
    fails(&["quantize", &f16, &out, "--target-bpw=0.01"], 2, &["the minimum is 2.6"]);
    fails(&["quantize", &f16, &out, "--target-size=0"], 2, &["--target-size"]);
    fails(
        &["quantize", &f16, &out, "--target-size=1"],
        2,
        &["a file size of 1 B is too small: the minimum is 1.43 MB (14"],
    );
    fails(&[&quantize[..], &["0"]].concat(), 2, &["`0` is not a number of threads"]);
    for (option, value) in
        [("--eps", "nan"), ("--rope-base", "0"), ("--context-length", "0"), ("--gqa", "0")]
    {
        fails(&[&convert[..], &[option, value]].concat(), 2, &[option]);
    }
}

#[test]
fn graft_patterns_may_contain_colons() {
    let dir = Dir::new();
    let (f16, q8, out) = (dir.f16(), dir.path("q8.gguf"), dir.path("out.gguf"));
    succeeds(&["quantize", &f16, &q8, "q8_0"]);
    let types = |path: &str| {
        let shown = json(&succeeds(&["inspect", path, "--json"]));
        let tensors = shown["tensors"].as_array().unwrap().iter();
        let q8 = tensors.filter(|tensor| tensor["type"] == "Q8_0");
        q8.map(|tensor| tensor["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let wanted = ["blk.0.attn_q.weight", "blk.0.attn_v.weight"];
    for pattern in [r"blk\.0\.attn_(?:q|v)\.", r"^blk\.[[:digit:]&&[0]]\.attn_[qv]\."] {
        let one = format!("{q8}:{pattern}");
        for graft in [&["--graft", &one][..], &["--graft-from", &q8, pattern]] {
            succeeds(&[&["edit", &f16, "-o", &out][..], graft].concat());
            let mut found = types(&out);
            found.sort();
            assert_eq!(found, wanted, "{graft:?}");
            fs::remove_file(&out).unwrap();
        }
    }
    fails(&["edit", &f16, "-o", &out, "--graft", &q8], 2, &["expected MODEL:REGEX"]);
    let broken = format!("{q8}:(");
    fails(&["edit", &f16, "-o", &out, "--graft", &broken], 2, &["--graft-from MODEL REGEX"]);
    fails(&["edit", &f16, "-o", &out, "--graft-from", &q8, "("], 2, &["unclosed group"]);
}
