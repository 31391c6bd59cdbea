//! `gguf quantize`, `recipe` and `imatrix`.

use std::collections::BTreeMap;
use std::path::Path;

use gguf_quantize::imatrix::{Entry, Imatrix};

use crate::cli::support::{Dir, MODEL, fails, json, other_weights, succeeds};

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// Writes an importance matrix that covers block 0 only.
pub fn imatrix(dir: &Dir) -> String {
    let entry = |columns: usize| Entry {
        sums: (0..columns).map(|i| (1 + i % 7) as f32).collect(),
        counts: vec![3],
    };
    let names = ["attn_k", "attn_output", "attn_q", "attn_v", "ffn_gate", "ffn_up"];
    let mut entries: BTreeMap<_, _> =
        names.iter().map(|name| (format!("blk.0.{name}.weight"), entry(256))).collect();
    entries.insert("blk.0.ffn_down.weight".into(), entry(768));
    let path = dir.path("imatrix.gguf");
    Imatrix {
        datasets: vec!["a.txt".into()],
        chunk_count: 1,
        chunk_size: Some(3),
        fingerprint: None,
        entries,
    }
    .write_gguf(Path::new(&path), &gguf_store::Overwrite::default())
    .unwrap();
    path
}

#[test]
fn parts_and_several_outputs_equal_the_whole() {
    let dir = Dir::new();
    let (f16, whole, out) = (dir.f16(), dir.path("whole.gguf"), dir.path("out.gguf"));
    succeeds(&["quantize", &f16, &whole, "Q4_K_M"]);
    for part in ["3/3", "1/3", "2/3"] {
        succeeds(&["quantize", "--part", part, &f16, &out, "Q4_K_M"]);
    }
    let (first, merged) = (dir.path("out-00001-of-00003.gguf"), dir.path("merged.gguf"));
    succeeds(&["merge", &first, &merged]);
    assert_eq!(read(&merged), read(&whole));
    let (a, b) = (dir.path("a.gguf"), dir.path("b.gguf"));
    let named = [format!("Q4_K_M={a}"), format!("Q8_0={b}")];
    succeeds(&["quantize", &f16, "--out", &named[0], "--out", &named[1], "2"]);
    assert_eq!(read(&a), read(&whole));
    succeeds(&["quantize", &f16, &dir.path(""), "Q8_0,Q4_K_M"]);
    assert_eq!(read(&dir.path("f16-4.2M-Q8_0.gguf")), read(&b));
    succeeds(&["quantize", "--keep-split", &first, &dir.path("kept.gguf"), "COPY"]);
    for i in 1..=3 {
        assert!(Path::new(&dir.path(&format!("kept-0000{i}-of-00003.gguf"))).is_file());
    }
    for (wrong, part) in [("4/3", "I/N"), ("0/3", "I/N"), ("99/99", "one part per tensor")] {
        fails(&["quantize", "--part", wrong, &f16, &out, "Q4_K_M"], 2, &[part]);
    }
    fails(&["quantize", &f16, &whole, "Q8_0,Q4_0"], 2, &["not a directory"]);
    fails(&["quantize", "--force", &f16, "--out", &named[0], "--out", &named[0]], 2, &["twice"]);
}

#[test]
fn parts_of_different_runs_are_refused() {
    let dir = Dir::new();
    let (f16, other, matrix) = (dir.f16(), other_weights(&dir), imatrix(&dir));
    let merged = dir.path("merged.gguf");
    // The same weights under another name, and other weights.
    let (copied, doubled) = (dir.path("copied.gguf"), dir.path("doubled.gguf"));
    std::fs::copy(&matrix, &copied).unwrap();
    let mut imatrix = Imatrix::open(Path::new(&matrix)).unwrap();
    imatrix.entries.get_mut("blk.0.ffn_up.weight").unwrap().sums[3] *= 2.0;
    imatrix.write_gguf(Path::new(&doubled), &gguf_store::Overwrite::default()).unwrap();
    let (matrix, copied, doubled) = (
        format!("--imatrix={matrix}"),
        format!("--imatrix={copied}"),
        format!("--imatrix={doubled}"),
    );
    let out = dir.path("out.gguf");
    let part = |part: &str, input: &str, words: &[&str]| {
        let (options, types) = words.split_at(words.len() - 1);
        let all =
            [&["quantize", "--force", "--part", part], options, &[input, &out], types].concat();
        succeeds(&all);
        dir.path(&format!("out-0000{}-of-00002.gguf", &part[..1]))
    };
    let work: [(&str, &[&str], bool); 7] = [
        (&f16, &["Q4_K_M"], true),
        (&other, &["Q4_K_M"], false),
        (&f16, &["Q4_K_S"], false),
        (&f16, &["--output-tensor-type=q8_0", "Q4_K_M"], false),
        (&f16, &["--override-kv=general.name=str:x", "Q4_K_M"], false),
        (&f16, &[&matrix, "Q4_K_M"], false),
        (&f16, &["--prune-layers=1", "Q4_K_M"], false),
    ];
    let mut codes = Vec::new();
    for (input, words, same) in work {
        let first = part("1/2", &f16, &["Q4_K_M"]);
        part("2/2", input, words);
        let _ = std::fs::remove_file(&merged);
        let output = crate::cli::support::gguf(&["merge", &first, &merged]);
        let message = String::from_utf8_lossy(&output.stderr);
        let expected = if same { 0 } else { 1 };
        assert_eq!(output.status.code(), Some(expected), "{input} {words:?}: {message}");
        let check = crate::cli::support::gguf(&["check", &first, "--json"]);
        assert_eq!(check.status.code(), Some(expected), "{input} {words:?}");
        let found = json(&String::from_utf8(check.stdout).unwrap());
        let found = found["findings"].as_array().unwrap().iter();
        let found: Vec<_> = found.map(|finding| finding["code"].clone()).collect();
        assert_eq!(found.contains(&"shard-other-work".into()), !same, "{found:?}");
        codes.push(found);
        if !same {
            assert!(message.contains("out-00002-of-00002.gguf"), "{message}");
            assert!(!Path::new(&merged).exists());
            fails(&["quantize", &first, &merged, "COPY"], 1, &["out-00002-of-00002.gguf"]);
        }
    }
    // Two importance matrices with other values, and one under two names.
    for (second, same) in [(&doubled, false), (&copied, true)] {
        let first = part("1/2", &f16, &[&matrix, "Q4_K_M"]);
        part("2/2", &f16, &[second, "Q4_K_M"]);
        let output = crate::cli::support::gguf(&["merge", &first, &merged]);
        assert_eq!(output.status.success(), same, "{second}");
    }
}

#[test]
fn a_recipe_reproduces_types() {
    let dir = Dir::new();
    let (f16, like, out, recipe) =
        (dir.f16(), dir.path("like.gguf"), dir.path("out.gguf"), dir.path("recipe.txt"));
    succeeds(&["quantize", "--target-bpw", "4.5", "--save-recipe", &recipe, &f16, &like]);
    let lifted = succeeds(&["recipe", &like]);
    assert_eq!(lifted, String::from_utf8(read(&recipe)).unwrap());
    succeeds(&["quantize", "--tensor-type-file", &recipe, &f16, &out, "Q2_K"]);
    assert_eq!(lifted, succeeds(&["recipe", &out]));
    std::fs::write(&recipe, "a=q8_0\nb\n").unwrap();
    let args = ["quantize", "--force", "--tensor-type-file", &recipe, &f16, &out, "Q2_K"];
    fails(&args, 1, &["recipe.txt", "line 2"]);
    fails(
        &["quantize", "--force", "--target-size", "1M", &f16, &out],
        2,
        &["too small", "the minimum is"],
    );
    fails(&["quantize", "--target-size", "1M", &f16, &out, "2", "Q4_0"], 2, &["IN OUT [THREADS]"]);
}

/// Overridden keys count toward the size target.
#[test]
fn size_targets_include_overridden_keys() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    let key = format!("general.description=str:{}", "of no importance ".repeat(1000));
    for size in [2_000_000, 2_001_000] {
        let words = ["quantize", "--force", "--override-kv", &key, "--target-size"];
        succeeds(&[&words[..], &[&size.to_string(), &f16, &out]].concat());
        let result = std::fs::metadata(&out).unwrap().len();
        assert!(result <= size && result > size - 60_000, "{result} of {size}");
    }
}

#[test]
fn lossless_requantizing_needs_no_flag() {
    let dir = Dir::new();
    let (f16, small, large) = (dir.f16(), dir.path("small.gguf"), dir.path("large.gguf"));
    succeeds(&["quantize", "--pure", &f16, &small, "Q4_0"]);
    fails(&["quantize", &small, &large, "Q6_K"], 2, &["--allow-requantize"]);
    succeeds(&["quantize", &small, &large, "Q8_0"]);
    // The comparison uses decoded values.
    let shown = crate::cli::support::gguf(&["diff", &small, &large, "--json"]);
    let shown = json(&String::from_utf8(shown.stdout).unwrap());
    let changed = shown["tensors"].as_array().unwrap();
    assert!(!changed.is_empty());
    assert!(changed.iter().all(|tensor| tensor["figures"]["rmse"] == 0.0), "{shown:#}");
}

#[test]
fn blocks_are_pruned() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    succeeds(&["quantize", "--prune-layers", "1,2", &f16, &out, "Q8_0"]);
    let shown = json(&succeeds(&["inspect", &out, "--json"]));
    assert_eq!(shown["metadata"]["llama.block_count"]["value"], 2);
    assert_eq!(shown["tensors"].as_array().unwrap().len(), 39 - 18);
    succeeds(&["check", &out]);
    let diff = crate::cli::support::gguf(&["diff", &f16, &out, "--json"]);
    let diff = json(&String::from_utf8(diff.stdout).unwrap());
    assert!(diff.to_string().contains("blk.3.ffn_up.weight"));
    fails(&["quantize", "--force", "--prune-layers", "4", &f16, &out, "Q8_0"], 2, &["no block 4"]);
    fails(
        &["quantize", "--force", "--prune-layers", "0,1,2,3", &f16, &out, "Q8_0"],
        2,
        &["no block would"],
    );
}

#[test]
fn tensors_without_imatrix_are_listed_first() {
    let dir = Dir::new();
    let (f16, out, matrix) = (dir.f16(), dir.path("out.gguf"), imatrix(&dir));
    let args = ["quantize", "--imatrix", &matrix, &f16, &out, "IQ2_XXS"];
    fails(
        &args,
        2,
        &["`blk.1.ffn_down.weight` as IQ2_XXS, ", " and 15 others", "--imatrix-missing"],
    );
    assert!(!Path::new(&out).exists());
    for (policy, other) in [("fallback", "Q2_K"), ("uniform", "IQ2_XXS")] {
        let policy = format!("--imatrix-missing={policy}");
        succeeds(&["quantize", "--force", "--imatrix", &matrix, &policy, &f16, &out, "IQ2_XXS"]);
        let shown = json(&succeeds(&["inspect", &out, "--json"]));
        let ty = |name: &str| {
            let tensors = shown["tensors"].as_array().unwrap();
            tensors.iter().find(|tensor| tensor["name"] == name).unwrap()["type"].clone()
        };
        assert_eq!(ty("blk.0.ffn_up.weight"), "IQ2_XXS");
        assert_eq!(ty("blk.1.ffn_up.weight"), other);
        let value =
            |key: &str| shown["metadata"][format!("quantize.imatrix.{key}")]["value"].clone();
        assert_eq!(value("file"), matrix);
        assert_eq!(value("dataset"), "a.txt");
        assert_eq!((value("entries_count"), value("chunks_count")), (7.into(), 1.into()));
    }
    // Also in one pass from the checkpoint, whose weights are F16.
    let direct = dir.path("direct.gguf");
    let types = ["--imatrix", &matrix, "--imatrix-missing=uniform", "--tensor-type", "attn_q=q8_0"];
    let to_it = [&types[..], &["-o", &direct, "--outtype", "q2_k"]].concat();
    succeeds(&[&["convert", MODEL], &to_it[..]].concat());
    succeeds(&[&["quantize", "--force"], &types[..], &[&f16, &out, "q2_k"]].concat());
    succeeds(&["verify", &direct, "--source", &out]);
    let wrong = ["--include-weights", "x", &f16, &out, "Q4_0"];
    let nothing = [&["quantize", "--force", "--imatrix", &matrix], &wrong[..]].concat();
    fails(&nothing, 2, &["--include-weights"]);
    fails(
        &["quantize", "--force", "--imatrix", &f16, &f16, &out, "Q4_0"],
        1,
        &["not an importance matrix"],
    );
}

#[test]
fn importance_matrices_are_merged_and_converted() {
    let dir = Dir::new();
    let (one, two, dat) = (imatrix(&dir), dir.path("two.gguf"), dir.path("one.dat"));
    let all =
        json(&succeeds(&["imatrix", "--in-file", &one, "--in-file", &one, "-o", &two, "--json"]));
    assert_eq!((&all["chunks"], &all["matrices"][0]["columns"]), (&2.into(), &256.into()));
    succeeds(&["imatrix", "--in-file", &one, "-o", &dat]);
    let back = dir.path("back.gguf");
    succeeds(&["imatrix", "--in-file", &dat, "-o", &back, "--ctx-size", "3"]);
    assert!(read(&back) == read(&one));
    assert!(succeeds(&["imatrix", "--in-file", &dat, "--show-statistics"]).contains("entropy"));
    let recounted = succeeds(&["imatrix", "--in-file", &one, "--ctx-size", "1", "--json"]);
    assert_eq!(json(&recounted)["chunks"], 3);
    let other = dir.path("other.gguf");
    let mut entries = Imatrix::open(Path::new(&one)).unwrap().entries;
    entries.get_mut("blk.0.attn_q.weight").unwrap().sums.pop();
    let narrower = Imatrix { chunk_size: Some(3), entries, ..Imatrix::default() };
    narrower.write_gguf(Path::new(&other), &gguf_store::Overwrite::default()).unwrap();
    let both = ["imatrix", "--in-file", &one, "--in-file", &other, "-o", &two];
    fails(&both, 2, &["other.gguf", "255 sums", "not of the same model"]);
    fails(&["imatrix", "--in-file", &one, "-o", &one], 2, &["is an input"]);
}

#[test]
fn nan_is_reported_with_its_shard() {
    let dir = Dir::new();
    let (f16, nan, shards) = (dir.f16(), dir.path("nan.gguf"), dir.path("shard"));
    let mut bytes = std::fs::read(f16).unwrap();
    // Last weight of the last tensor, F32.
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&nan, bytes).unwrap();
    succeeds(&["split", &nan, &shards, "--split-max-tensors", "20"]);
    let (first, second) = (format!("{shards}-00001-of-00002.gguf"), "shard-00002-of-00002.gguf:");
    let out = dir.path("out.gguf");
    fails(
        &["quantize", &first, &out, "q8_0"],
        1,
        &[second, "`output_norm.weight`", "NaN in row 0"],
    );
}
