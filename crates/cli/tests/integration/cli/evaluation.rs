//! Perplexity, KL divergence and importance matrices.

use std::fs;
use std::path::{Path, PathBuf};

use gguf_quantize::imatrix::Imatrix;
use serde_json::Value;

use crate::cli::support::{Dir, fails, json, succeeds};

pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

/// Returns a text from the repository.
pub fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../LICENSE-APACHE");
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_model_and_its_quantization() {
    let dir = Dir::new();
    let (model, small, text) = (dir.f16(), dir.path("q4_0.gguf"), text());
    succeeds(&["quantize", &model, &small, "Q4_0"]);
    let flags = ["-f", &text, "-c", "64", "--chunks", "5", "--json"];
    let evaluate =
        |command: &[&str], more: &[&str]| json(&succeeds(&[command, &flags, more].concat()));
    let found = evaluate(&["perplexity", &model, &small], &[])["models"].clone();
    assert_eq!((&found[0]["chunks"], &found[0]["tokens"]), (&5.into(), &160.into()));
    let (of_model, of_small) = (number(&found[0], "perplexity"), number(&found[1], "perplexity"));
    assert!((number(&found[0], "mean_nll").exp() - of_model).abs() < 1e-9);
    assert!(of_model > 1.0 && of_small != of_model);
    // Results do not depend on threads or batch size.
    for more in [["-t", "1"], ["-b", "7"], ["-b", "2048"]] {
        assert_eq!(evaluate(&["perplexity", &model, &small], &more)["models"], found, "{more:?}");
    }

    let reference = ["divergence", "--reference", &model];
    let found = evaluate(&[&reference[..], &[&model, &small]].concat(), &[])["models"].clone();
    let (same, other) = (&found[0], &found[1]);
    for (key, value) in
        [("mean_kld", 0.0), ("max_kld", 0.0), ("top1_agreement", 100.0), ("ppl_ratio", 1.0)]
    {
        assert_eq!(number(same, key), value, "{key}");
    }
    assert_eq!(number(other, "ppl_base"), of_model);
    assert_eq!(number(other, "ppl_q"), of_small);
    assert!((number(other, "ppl_ratio") - of_small / of_model).abs() < 1e-9);
    assert!((number(other, "ppl_difference") - (of_small - of_model)).abs() < 1e-9);
    let of = |key: &str| number(other, key);
    assert!(
        0.0 < of("median_kld")
            && of("median_kld") < of("max_kld")
            && of("mean_kld") < of("max_kld")
    );
    assert!(of("top1_agreement") < 100.0 && of("top1_agreement") > 50.0);
    assert_eq!(number(&other["kld_percentiles"], "50"), of("median_kld"));
    assert!(
        number(&other["delta_p_percentiles"], "99") > number(&other["delta_p_percentiles"], "1")
    );
    let shown =
        succeeds(&["divergence", "-r", &model, &small, "-f", &text, "-c", "64", "--chunks", "5"]);
    for part in
        ["160 tokens evaluated in 5 chunks", "top-1 agreement, %", "99.9th percentile", "median"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn overlapping_chunks() {
    let dir = Dir::new();
    let (model, text) = (dir.f16(), text());
    let flags = ["perplexity", &model, "-f", &text, "-c", "32", "--chunks", "4"];
    let found = json(&succeeds(&[&flags[..], &["--stride", "8", "--json"]].concat()));
    assert_eq!(found["models"][0]["tokens"], 32);
    let shown = succeeds(&flags);
    assert!(shown.contains("perplexity ") && shown.contains("64 tokens evaluated in 4 chunks"));
}

#[test]
fn invalid_evaluations_are_refused() {
    let dir = Dir::new();
    let (model, short, other) = (dir.f16(), dir.path("short.txt"), dir.path("other.gguf"));
    fs::write(&short, "In the beginning").unwrap();
    fails(&["perplexity", &model, "-f", &short], 2, &["a chunk has 512", "longer text"]);
    fails(&["perplexity", &model, "-f", &short, "-c", "1"], 2, &["chunks of 1 tokens"]);
    fails(&["perplexity", &model, "-f", &dir.path("none.txt")], 3, &["none.txt"]);
    let text = text();
    // A copy of the model with a different token text.
    let mut bytes = fs::read(&model).unwrap();
    let at = bytes.windows(7).position(|window| window == b"kingdom").unwrap();
    bytes[at + 6] = b'n';
    fs::write(&other, bytes).unwrap();
    let words = ["divergence", "-r", &model, &other, "-f", &text];
    fails(&words, 2, &["other.gguf", "kingdon\", and", "in ", "f16.gguf"]);
}

/// Compares with `exact.json`, computed by PyTorch: some types here, all in `interop/evaluation/divergence.py`.
#[test]
fn results_match_pytorch() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
        return;
    };
    let folder = data.join("tiny-kjv-llama");
    let exact: Value =
        serde_json::from_slice(&fs::read(folder.join("exact.json")).unwrap()).unwrap();
    let dir = Dir::new();
    let model = dir.f16();
    let mixes = ["Q8_0", "Q4_K_M", "Q2_K"];
    let files = mixes.map(|mix| dir.path(&format!("{mix}.gguf")));
    for (mix, file) in mixes.iter().zip(&files) {
        succeeds(&["quantize", &model, file, mix]);
    }
    let text = folder.join("heldout.txt");
    let mut words = vec!["divergence", "-r", &model];
    words.extend(files.iter().map(String::as_str));
    words.extend(["-f", text.to_str().unwrap(), "-c", "256", "--chunks", "64", "--json"]);
    let found = json(&succeeds(&words));
    let is_close = |found: f64, wanted: f64, share: f64| (found - wanted).abs() <= share * wanted;
    for (mix, found) in mixes.iter().zip(found["models"].as_array().unwrap()) {
        let wanted = &exact[mix];
        let base = number(&exact["f16"], "ppl");
        // The file has seven digits, and the summation order differs.
        assert!(is_close(number(found, "ppl_base"), base, 1e-6), "{mix}");
        assert!(is_close(number(found, "ppl_q"), number(wanted, "ppl"), 1e-6), "{mix}");
        for key in ["mean_kld", "median_kld", "max_kld"] {
            assert!(
                is_close(number(found, key), number(wanted, key), 5e-3),
                "{mix} {key}: {found}"
            );
        }
        assert!(
            is_close(number(found, "top1_agreement"), number(wanted, "same_top"), 1e-5),
            "{mix}: {found}"
        );
    }
}

/// Asserts that two importance matrices have the same rows, and sums within a relative tolerance.
fn assert_close(actual: &str, expected: &Path, share: f32) {
    let (found, wanted) =
        (Imatrix::open(actual.as_ref()).unwrap(), Imatrix::open(expected).unwrap());
    assert_eq!((found.chunk_count, found.chunk_size), (wanted.chunk_count, wanted.chunk_size));
    assert!(found.entries.keys().eq(wanted.entries.keys()));
    for (name, wanted) in &wanted.entries {
        let found = &found.entries[name];
        assert_eq!(
            (found.sums.len(), &found.counts),
            (wanted.sums.len(), &wanted.counts),
            "{name}"
        );
        for (found, wanted) in found.sums.iter().zip(&wanted.sums) {
            assert!((found - wanted).abs() <= share * wanted, "{name}: {found} {wanted}");
        }
    }
}

#[test]
fn imatrix_is_collected() {
    let dir = Dir::new();
    let (model, text) = (dir.f16(), text());
    let path = |name: &str| dir.path(name);
    let collect = |output: &str, more: &[&str]| {
        let words = ["imatrix", &model, "-f", &text, "-c", "64", "-o", output];
        succeeds(&[&words[..], more].concat())
    };
    let whole = path("whole.gguf");
    let shown = collect(&whole, &["--chunks", "6", "--save-frequency", "4"]);
    assert!(shown.contains("6 chunks of 64 tokens"), "{shown}");
    let copy = Imatrix::open(format!("{whole}.at_4").as_ref()).unwrap();
    assert_eq!(copy.chunk_count, 4);
    let bytes = fs::read(&whole).unwrap();
    for more in [["-t", "1"], ["-b", "40"]] {
        let other = path("other.gguf");
        collect(&other, &[&["--chunks", "6", "--force"], &more[..]].concat());
        assert!(fs::read(&other).unwrap() == bytes, "{more:?}");
    }
    // In parts: intermediate sums are rounded to F32.
    let part = path("part.gguf");
    collect(&part, &["--chunks", "2"]);
    let again = ["imatrix", &model, "-f", &text, "-c", "64", "-o", &part, "--chunks", "6"];
    fails(&again, 2, &["part.gguf", "--force"]);
    collect(&part, &["--chunks", "6", "--resume"]);
    assert_close(&part, whole.as_ref(), 1e-6);
    let (first, rest) = (path("first.gguf"), path("rest.gguf"));
    collect(&first, &["--chunks", "5"]);
    collect(&rest, &["--chunk", "5", "--chunks", "1", "--in-file", &first]);
    assert_close(&rest, whole.as_ref(), 1e-6);
    // The output matrix is collected on request only; the legacy format stores chunk counts.
    let entries = |path: &str| Imatrix::open(path.as_ref()).unwrap().entries;
    assert!(entries(&whole).keys().all(|name| name.starts_with("blk.")));
    let dat = path("with.dat");
    collect(&dat, &["--chunks", "1", "--process-output"]);
    assert!(entries(&dat).contains_key("output.weight"));
    succeeds(&["quantize", &model, &path("q.gguf"), "IQ2_XXS", "--imatrix", &whole]);

    let mut by_default = std::process::Command::new(env!("CARGO_BIN_EXE_gguf"));
    by_default.args(["imatrix", &model, "-f", &text, "--chunks", "1"]).current_dir(dir.path(""));
    assert!(by_default.output().unwrap().status.success());
    assert!(Path::new(&path("imatrix.gguf")).exists());
    fails(&["imatrix", &model, "-o", &path("x.gguf")], 2, &["--file"]);
    let words = ["imatrix", &model, "-f", &text, "-o", &path("y.gguf"), "--chunk", "999999"];
    fails(&words, 2, &["999999 are skipped"]);
}

#[test]
fn imatrix_matches_llama_cpp() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
        return;
    };
    let folder = data.join("tiny-kjv-llama");
    let (dir, text) = (Dir::new(), folder.join("calibration.txt"));
    let (model, found) = (dir.f16(), dir.path("imatrix.gguf"));
    succeeds(&["imatrix", &model, "-f", text.to_str().unwrap(), "-c", "256", "-o", &found]);
    // llama.cpp rounds activations to F16.
    assert_close(&found, &folder.join("imatrix.gguf"), 1e-3);
}
