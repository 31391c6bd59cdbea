//! `gguf sensitivity`, and size targets that use it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::support::{Dir, fails, json, succeeds};

/// Returns a text from the repository.
fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../LICENSE-APACHE");
    path.to_str().unwrap().to_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// The sensitivity of a tensor equals the KL divergence of a file in which only this tensor is quantized.
#[test]
fn sensitivity_matches_divergence() {
    let dir = Dir::new();
    let (model, text, out) = (dir.f16(), text(), dir.path("s.json"));
    let flags = ["-f", &text, "-c", "64", "--chunks", "2"];
    let words = ["sensitivity", &model, "--types", "q8_0,q4_0", "--exact", "-o", &out, "--json"];
    let mut found = json(&succeeds(&[&words[..], &flags].concat()));
    // The document has a `schema`, the file a `version`.
    assert_eq!(found.as_object_mut().unwrap().remove("schema").unwrap(), "gguf-kit/sensitivity/2");
    assert_eq!(json(&fs::read_to_string(&out).unwrap()), found);
    assert_eq!(found["groups"].as_array().unwrap().len(), 7 * 4 + 2);
    for name in ["blk.2.ffn_down.weight", "token_embd.weight", "output.weight"] {
        let file = dir.path("one.gguf");
        let only = format!("^{}$=q4_0", name.replace('.', "\\."));
        let words = ["quantize", "--force", "--tensor-type", &only, "--tensor-type", ".=f16"];
        succeeds(&[&words[..], &[&model, &file, "f16"]].concat());
        let words = ["divergence", "-r", &model, &file, "--json"];
        let expected = json(&succeeds(&[&words[..], &flags].concat()))["models"][0].clone();
        let divergence = &found["tensors"][name]["divergence"];
        assert_eq!(number(&divergence["Q4_0"]), number(&expected["mean_kld"]), "{name}");
        assert!(number(&divergence["Q8_0"]) < 0.02 * number(&divergence["Q4_0"]), "{name}");
    }
    // Roles and blocks distribute the KL divergence over their tensors.
    for (by, groups, name) in [("role", 9, "attn_q.weight"), ("block", 6, "blk.1")] {
        let words = ["sensitivity", &model, "--types", "q4_0", "--by", by, "--json"];
        let found = json(&succeeds(&[&words[..], &flags].concat()));
        let all = found["groups"].as_array().unwrap();
        assert_eq!(all.len(), groups, "{by}");
        let group = all.iter().find(|group| group["name"] == name).unwrap();
        let tensors = group["tensors"].as_array().unwrap();
        let of = |tensor: &Value| {
            number(&found["tensors"][tensor.as_str().unwrap()]["divergence"]["Q4_0"])
        };
        let sum: f64 = tensors.iter().map(of).sum();
        assert!((sum / number(&group["measured"]["Q4_0"]) - 1.0).abs() < 1e-9, "{by}");
    }
    let shown = succeeds(&[&["sensitivity", &model, "--by", "role"], &flags[..]].concat());
    assert!(
        shown.contains("64 tokens evaluated in 2 chunks") && shown.contains("ffn_down"),
        "{shown}"
    );
}

#[test]
fn size_targets_use_sensitivities() {
    let dir = Dir::new();
    let (model, text) = (dir.f16(), text());
    let (file, out) = (dir.path("s.json"), dir.path("out.gguf"));
    let words = ["sensitivity", &model, "-f", &text, "-c", "64", "--chunks", "2", "--by", "role"];
    succeeds(&[&words[..], &["-o", &file]].concat());
    let quantize = |more: &[&str]| {
        let words = ["quantize", &model, &out, "--target-bpw", "5", "--force", "--dry-run"];
        json(&succeeds(&[&words[..], &["--json"], more].concat()))
    };
    let plain = quantize(&[]);
    let with = quantize(&["--sensitivity", &file]);
    assert!(plain["tensors"] != with["tensors"]);
    // Insensitive tensors get the smallest type, a sensitive one F16.
    let mut changed = json(&fs::read_to_string(&file).unwrap());
    for (name, tensor) in changed["tensors"].as_object_mut().unwrap() {
        for (_, divergence) in tensor["divergence"].as_object_mut().unwrap() {
            *divergence = if name == "blk.1.attn_v.weight" { 1.0 } else { 0.0 }.into();
        }
    }
    fs::write(&file, changed.to_string()).unwrap();
    let tensors = quantize(&["--sensitivity", &file])["tensors"].clone();
    let of = |name: &str| {
        let mut all = tensors.as_array().unwrap().iter();
        all.find(|tensor| tensor["name"] == name).unwrap()["to"].clone()
    };
    assert_eq!(of("blk.1.attn_v.weight"), "F16", "{tensors}");

    let words = ["quantize", &model, &out, "q4_0", "--sensitivity", &file];
    fails(&words, 2, &["--target-size or --target-bpw"]);
    let words = ["quantize", &model, &out, "--target-bpw", "5", "--sensitivity", &file];
    changed["tensors"].as_object_mut().unwrap().remove("blk.1.attn_v.weight");
    fs::write(&file, changed.to_string()).unwrap();
    fails(&words, 2, &["no tensor `blk.1.attn_v.weight`", "another model"]);
    changed["version"] = 1.into();
    fs::write(&file, changed.to_string()).unwrap();
    fails(&words, 1, &["s.json", "has version 1; expected version 2"]);
    fs::write(&file, "{}").unwrap();
    fails(&words, 1, &["s.json", "is not a sensitivity file"]);
}

/// One type per tensor is measured; extrapolated values are close to measured ones.
#[test]
fn extrapolation_is_close_to_measurement() {
    let dir = Dir::new();
    let (model, text) = (dir.f16(), text());
    let flags = ["-f", &text, "-c", "64", "--chunks", "4", "--types", "q2_k,q3_k,q4_0,q5_k,q8_0"];
    let found = |more: &[&str]| {
        json(&succeeds(&[&["sensitivity", &model, "--json"], &flags[..], more].concat()))
    };
    let (measured, estimated) = (found(&["--exact"]), found(&[]));
    let mut pairs = Vec::new();
    for (name, tensor) in measured["tensors"].as_object().unwrap() {
        for (ty, measured) in tensor["divergence"].as_object().unwrap() {
            let estimated = number(&estimated["tensors"][name]["divergence"][ty]);
            let measured = number(measured);
            if ty == "Q3_K" {
                assert_eq!(estimated, measured, "{name}: the one that is measured");
                continue;
            }
            let factor = estimated / measured;
            assert!((0.3..3.0).contains(&factor), "{name} {ty}: {estimated} {measured}");
            pairs.push((estimated.ln(), measured.ln()));
        }
    }
    assert_eq!(pairs.len(), 30 * 4);
    let correlation = correlation(&pairs);
    assert!(correlation > 0.99, "{correlation}");
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (a, b) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
    let covariance = mean(&|pair| (pair.0 - a) * (pair.1 - b));
    let (of_a, of_b) = (mean(&|pair| (pair.0 - a).powi(2)), mean(&|pair| (pair.1 - b).powi(2)));
    covariance / (of_a * of_b).sqrt()
}

/// Runs with random halves of the tensors tell the effect of each.
#[test]
fn fewer_runs_estimate_the_effects() {
    let dir = Dir::new();
    let (model, text) = (dir.f16(), text());
    let flags = ["-f", &text, "-c", "64", "--chunks", "4", "--types", "q3_k"];
    let effects = |more: &[&str]| -> Vec<f64> {
        let found =
            json(&succeeds(&[&["sensitivity", &model, "--json"], &flags[..], more].concat()));
        let groups = found["groups"].as_array().unwrap().iter();
        groups.map(|group| number(&group["measured"]["Q3_K"])).collect()
    };
    let (single, estimated) = (effects(&[]), effects(&["--runs", "24"]));
    assert_eq!(single.len(), 30);
    assert_eq!(estimated, effects(&["--runs", "24", "-t", "1"]), "on any number of threads");
    assert_eq!(single, effects(&["--runs", "30"]), "one per tensor is exact");
    let pairs: Vec<_> = estimated.iter().zip(&single).map(|(a, b)| (a.ln(), b.ln())).collect();
    let correlation = correlation(&pairs);
    assert!(correlation > 0.9, "{correlation}");
}

/// Compares files of the same size, chosen by weight error and by sensitivity, on held-out text.
#[test]
fn sensitivities_reduce_divergence_at_the_same_size() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
        return;
    };
    let folder = data.join("tiny-kjv-llama");
    let text = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let dir = Dir::new();
    let (model, file) = (dir.f16(), dir.path("s.json"));
    let (calibration, heldout) = (text("calibration.txt"), text("heldout.txt"));
    let words = ["sensitivity", &model, "-f", &calibration, "-c", "256", "--chunks", "4"];
    succeeds(&[&words[..], &["-o", &file]].concat());
    let (plain, with) = (dir.path("plain.gguf"), dir.path("with.gguf"));
    succeeds(&["quantize", &model, &plain, "--target-bpw", "4.5"]);
    succeeds(&["quantize", &model, &with, "--target-bpw", "4.5", "--sensitivity", &file]);
    let words = ["divergence", "-r", &model, &plain, &with, "-f", &heldout, "-c", "256", "--json"];
    let found = json(&succeeds(&[&words[..], &["--chunks", "8"]].concat()))["models"].clone();
    let (plain, with) = (number(&found[0]["mean_kld"]), number(&found[1]["mean_kld"]));
    // 0.035 and 0.0042 over 32 chunks.
    assert!(with < 0.2 * plain && with < 0.006, "{with} {plain}");
}
