//! Perplexity, divergence and importance matrices, as a user meets them.

use std::fs;
use std::path::{Path, PathBuf};

use gguf_quantize::imatrix::Imatrix;
use serde_json::Value;

use crate::support::{Dir, fails, json, succeeds};

pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

/// A text that is always there.
pub fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../LICENSE-APACHE");
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_model_and_what_was_made_of_it() {
    let dir = Dir::new();
    let (model, small, text) = (dir.f16(), dir.path("q4_0.gguf"), text());
    succeeds(&["quantize", &model, &small, "Q4_0"]);
    let how = ["-f", &text, "-c", "64", "--chunks", "5", "--json"];
    let judged = |command: &[&str], more: &[&str]| json(&succeeds(&[command, &how, more].concat()));
    let found = judged(&["perplexity", &model, &small], &[])["models"].clone();
    assert_eq!((&found[0]["windows"], &found[0]["tokens"]), (&5.into(), &160.into()));
    let (of_model, of_small) = (number(&found[0], "perplexity"), number(&found[1], "perplexity"));
    assert!((number(&found[0], "mean_nll").exp() - of_model).abs() < 1e-9);
    assert!(of_model > 1.0 && of_small != of_model);
    // Neither threads nor batches change a bit.
    for more in [["-t", "1"], ["-b", "7"], ["-b", "2048"]] {
        assert_eq!(judged(&["perplexity", &model, &small], &more)["models"], found, "{more:?}");
    }

    let reference = ["divergence", "--reference", &model];
    let found = judged(&[&reference[..], &[&model, &small]].concat(), &[])["models"].clone();
    let (same, other) = (&found[0], &found[1]);
    for (key, value) in
        [("mean_kld", 0.0), ("max_kld", 0.0), ("same_top", 100.0), ("ppl_ratio", 1.0)]
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
    assert!(of("same_top") < 100.0 && of("same_top") > 50.0);
    assert_eq!(number(&other["kld_percentiles"], "50"), of("median_kld"));
    assert!(number(&other["change_percentiles"], "99") > number(&other["change_percentiles"], "1"));
    let shown =
        succeeds(&["divergence", "-r", &model, &small, "-f", &text, "-c", "64", "--chunks", "5"]);
    for part in ["160 predictions in 5 windows", "same top token, %", "99.9% are below", "median"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn windows_that_overlap() {
    let dir = Dir::new();
    let (model, text) = (dir.f16(), text());
    let how = ["perplexity", &model, "-f", &text, "-c", "32", "--chunks", "4"];
    let found = json(&succeeds(&[&how[..], &["--stride", "8", "--json"]].concat()));
    assert_eq!(found["models"][0]["tokens"], 32);
    let shown = succeeds(&how);
    assert!(shown.contains("perplexity ") && shown.contains("64 tokens predicted in 4 windows"));
}

#[test]
fn what_cannot_be_judged() {
    let dir = Dir::new();
    let (model, short, other) = (dir.f16(), dir.path("short.txt"), dir.path("other.gguf"));
    fs::write(&short, "In the beginning").unwrap();
    fails(&["perplexity", &model, "-f", &short], 2, &["a window 512", "longer text"]);
    fails(&["perplexity", &model, "-f", &short, "-c", "1"], 2, &["chunks of 1 tokens"]);
    fails(&["perplexity", &model, "-f", &dir.path("none.txt")], 3, &["none.txt"]);
    let text = text();
    // The same model with another text for one of its tokens.
    let mut bytes = fs::read(&model).unwrap();
    let at = bytes.windows(7).position(|window| window == b"kingdom").unwrap();
    bytes[at + 6] = b'n';
    fs::write(&other, bytes).unwrap();
    let words = ["divergence", "-r", &model, &other, "-f", &text];
    fails(&words, 2, &["other.gguf", "kingdon\", and", "in ", "f16.gguf"]);
}

/// The figures of `exact.json`, which torch computed: for some mixes here, for all of them in
/// `interop/evaluation.py`.
#[test]
fn figures_are_those_of_exact_sums() {
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
    let near = |found: f64, wanted: f64, share: f64| (found - wanted).abs() <= share * wanted;
    for (mix, found) in mixes.iter().zip(found["models"].as_array().unwrap()) {
        let wanted = &exact[mix];
        let base = number(&exact["f16"], "ppl");
        // The file has seven digits. Sums are in another order.
        assert!(near(number(found, "ppl_base"), base, 1e-6), "{mix}");
        assert!(near(number(found, "ppl_q"), number(wanted, "ppl"), 1e-6), "{mix}");
        for key in ["mean_kld", "median_kld", "max_kld"] {
            assert!(near(number(found, key), number(wanted, key), 5e-3), "{mix} {key}: {found}");
        }
        assert!(
            near(number(found, "same_top"), number(wanted, "same_top"), 1e-5),
            "{mix}: {found}"
        );
    }
}

/// That two importance matrices are of the same rows, and their sums differ by a share at most.
fn near(found: &str, wanted: &Path, share: f32) {
    let (found, wanted) = (Imatrix::open(found.as_ref()).unwrap(), Imatrix::open(wanted).unwrap());
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
fn importance_is_collected() {
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
    // In parts: sums are rounded to F32 in between.
    let part = path("part.gguf");
    collect(&part, &["--chunks", "2"]);
    let again = ["imatrix", &model, "-f", &text, "-c", "64", "-o", &part, "--chunks", "6"];
    fails(&again, 2, &["part.gguf", "--force"]);
    collect(&part, &["--chunks", "6", "--resume"]);
    near(&part, whole.as_ref(), 1e-6);
    let (first, rest) = (path("first.gguf"), path("rest.gguf"));
    collect(&first, &["--chunks", "5"]);
    collect(&rest, &["--chunk", "5", "--chunks", "1", "--in-file", &first]);
    near(&rest, whole.as_ref(), 1e-6);
    // The output matrix is read on demand only, and the other form is by chunks.
    let entries = |path: &str| Imatrix::open(path.as_ref()).unwrap().entries;
    assert!(entries(&whole).keys().all(|name| name.starts_with("blk.")));
    let dat = path("with.dat");
    collect(&dat, &["--chunks", "1", "--process-output"]);
    assert!(entries(&dat).contains_key("output.weight"));
    succeeds(&["quantize", &model, &path("q.gguf"), "IQ2_XXS", "--imatrix", &whole]);

    fails(&["imatrix", &model, "-f", &text], 2, &["--output-file"]);
    fails(&["imatrix", &model, "-o", &path("x.gguf")], 2, &["--file"]);
    let words = ["imatrix", &model, "-f", &text, "-o", &path("y.gguf"), "--chunk", "999999"];
    fails(&words, 2, &["999999 are left out"]);
}

#[test]
fn importance_is_that_of_llama_cpp() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
        return;
    };
    let folder = data.join("tiny-kjv-llama");
    let (dir, text) = (Dir::new(), folder.join("calibration.txt"));
    let (model, found) = (dir.f16(), dir.path("imatrix.gguf"));
    succeeds(&["imatrix", &model, "-f", text.to_str().unwrap(), "-c", "256", "-o", &found]);
    // llama.cpp rounds activations to F16 on the way.
    near(&found, &folder.join("imatrix.gguf"), 1e-3);
}
