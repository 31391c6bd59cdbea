//! Compares plans with llama.cpp's tool, tensor by tensor, for twelve model families at their real
//! sizes and for one small model that was quantized.

use std::path::PathBuf;

use gguf::TensorType;
use gguf_quantize::recipe::{Model, Plan, Preset, RecipeOptions, Target, TensorDesc, plan};
use serde_json::Value;

fn reference(file: &str) -> Option<Value> {
    let Some(folder) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: GGUF_TEST_DATA is not set");
        return None;
    };
    let text = std::fs::read_to_string(PathBuf::from(folder).join(file)).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn ty(value: &Value) -> TensorType {
    value.as_str().unwrap().parse().unwrap()
}

/// Splits `Q4_K_M+imatrix`.
fn options_of(label: &str) -> (&str, RecipeOptions) {
    let (preset, has_imatrix) =
        label.strip_suffix("+imatrix").map_or((label, false), |m| (m, true));
    (preset, RecipeOptions { has_imatrix, ..RecipeOptions::default() })
}

fn wrong<'a>(plan: &'a Plan<'_>, expected: impl Fn(&str) -> TensorType + 'a) -> Vec<String> {
    let wrong = plan.tensors.iter().filter(move |t| t.target != expected(t.source.name));
    wrong.map(|t| format!("{} became {} ({:?})", t.source.name, t.target, t.reason)).collect()
}

#[test]
fn families_match_llama_cpp() {
    let Some(reference) = reference("mix-plans.json") else { return };
    let mut tensors_checked = 0;
    for (family, facts) in reference.as_object().unwrap() {
        let metadata = &facts["metadata"];
        let architecture = facts["architecture"].as_str().unwrap();
        let model = Model::from_keys(architecture, |key| metadata[key].as_u64());
        let shapes: Vec<(&str, Vec<u64>)> = facts["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| serde_json::from_value(t[1].clone()).map(|s| (t[0].as_str().unwrap(), s)))
            .collect::<Result<_, _>>()
            .unwrap();
        // The input of llama.cpp's tool was all F32, so F32 marks unchanged tensors.
        let tensors: Vec<_> = shapes
            .iter()
            .map(|(name, shape)| TensorDesc { name, shape, ty: TensorType::F32 })
            .collect();
        let plans = facts["plans"].as_object().unwrap();
        assert_eq!(plans.len(), 64, "{family}");
        for (label, expected) in plans {
            let (preset, options) = options_of(label);
            let target = Target::Preset(preset.parse().unwrap());
            let got = plan(target, &model, &tensors, &options).unwrap();
            let expect =
                |name: &str| ty(expected["except"].get(name).unwrap_or(&expected["default"]));
            assert_eq!(wrong(&got, expect), [""; 0], "{family} {label}");
            tensors_checked += tensors.len();

            // The result must not depend on the order of the tensors.
            let backwards: Vec<_> = tensors.iter().rev().copied().collect();
            let mut again = plan(target, &model, &backwards, &options).unwrap();
            again.tensors.reverse();
            assert_eq!(again, got, "{family} {label}, backwards");
        }
    }
    assert_eq!(tensors_checked, 64 * 2861);
}

/// Shapes of `tiny-kjv-llama`: hidden size 256, FFN size 768, 8 heads over 4 KV heads, vocabulary
/// 2048.
fn tiny_shape(name: &str) -> &'static [u64] {
    match name.trim_start_matches("blk.").trim_start_matches(|c: char| c.is_ascii_digit()) {
        "token_embd.weight" | "output.weight" => &[256, 2048],
        ".attn_q.weight" | ".attn_output.weight" => &[256, 256],
        ".attn_k.weight" | ".attn_v.weight" => &[256, 128],
        ".ffn_up.weight" | ".ffn_gate.weight" => &[256, 768],
        ".ffn_down.weight" => &[768, 256],
        name if name.ends_with("_norm.weight") => &[256],
        name => panic!("unexpected tensor {name}"),
    }
}

#[test]
fn small_model_matches_llama_cpp() {
    let Some(reference) = reference("tiny-kjv-llama/reference.json") else { return };
    let reference = reference.as_object().unwrap();
    let model = Model {
        architecture: "llama".into(),
        layer_count: 4,
        head_count: 8,
        head_count_kv: 4,
        ..Model::default()
    };
    let source = reference["f16"]["tensors"].as_object().unwrap();
    let tensors: Vec<_> = source
        .iter()
        .map(|(name, facts)| TensorDesc { name, shape: tiny_shape(name), ty: ty(&facts[0]) })
        .collect();
    let mut refused = Vec::new();
    for (label, expected) in reference.iter().filter(|(label, _)| *label != "f16") {
        let (preset, options) = options_of(label);
        let preset: Preset = preset.parse().unwrap();
        let got = plan(Target::Preset(preset), &model, &tensors, &options).unwrap();
        let refusal = got.check_imatrix(|_| options.has_imatrix);
        assert_eq!(refusal.is_err(), expected.get("refused").is_some(), "{label}: {refusal:?}");
        if refusal.is_err() {
            refused.push(preset);
        } else {
            let expect = |name: &str| ty(&expected["tensors"][name][0]);
            assert_eq!(wrong(&got, expect), [""; 0], "{label}");
        }
    }
    // The descriptions in the help must match the plans.
    for &preset in Preset::ALL {
        let says_so = preset.description().ends_with("needs an importance matrix");
        assert_eq!(says_so, refused.contains(&preset), "{preset}");
    }
}
