//! `gguf lora`.

use crate::cli::support::{Dir, fails, json, succeeds};

#[test]
fn adapters_are_extracted_checked_and_merged() {
    let dir = Dir::new();
    let (base, tuned, adapter) = (dir.f16(), dir.path("tuned.gguf"), dir.path("adapter.gguf"));
    // The quantization error plays the role of fine-tuning.
    succeeds(&["quantize", &base, &tuned, "Q4_0"]);
    let args = ["lora", "extract", &base, &tuned, "--rank", "8", "-o", &adapter, "--json"];
    let held = &json(&succeeds(&args))["explained"];
    let share = held["blk.0.attn_q.weight"].as_f64().unwrap();
    // Noise has no structure: 8 of 256 directions explain little, but more than 8/256.
    assert!((8.0 / 256.0..0.5).contains(&share), "{share}");

    let report = json(&succeeds(&["lora", "check", &base, &adapter, "--json"]));
    assert_eq!((&report["compatible"], &report["rank"]), (&true.into(), &8.into()));
    fails(&["lora", "check", &base, &base], 1, &["not a LoRA adapter"]);

    let (merged, half) = (dir.path("merged.gguf"), format!("{adapter}=0.5"));
    succeeds(&["lora", "merge", &base, &half, "-o", &merged, "--outtype", "q8_0"]);
    let shown = json(&succeeds(&["inspect", &merged, "--json"]));
    let key = &shown["metadata"]["gguf_kit.merged_adapters"];
    assert!(key.to_string().contains("x 0.5"), "{key}");
    fails(&["lora", "merge", &tuned, &adapter, "-o", &merged], 2, &["--allow-requantize"]);
    fails(&["lora", "merge", &base, "x=much", "-o", &merged], 2, &["`much` is not a scale"]);
}
