//! DFlash and DSpark draft models.

use gguf_convert::export;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::fixtures::decoder::{
    HEAD, KV, LAYERS, NamedShape, VOCAB, WIDTH, config, draft_checkpoint, llama_layer, merged,
    norms, qk_norms,
};
use crate::fixtures::round_trip::assert_round_trip_with_findings;
use crate::fixtures::{Tiny, elements};

fn dflash_parts(class: &str, fields: Value) -> (Value, Vec<Vec<NamedShape>>) {
    let all = merged(
        json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "dflash_config": {"block_size": 4, "mask_token_id": 5, "target_layer_ids": [1, 3]}}),
        fields,
    );
    let heads = qk_norms();
    let layer = [llama_layer().concat(), heads].concat();
    (config(class, "qwen3", all), vec![layer; LAYERS])
}

const TOP_TENSORS: [(&str, &[usize]); 3] = [
    ("fc.weight", &[WIDTH, 2 * WIDTH]),
    ("hidden_norm.weight", &[WIDTH]),
    ("norm.weight", &[WIDTH]),
];

#[test]
pub fn dflash_round_trip() {
    let (config, layers) = dflash_parts("DFlashDraftModel", json!({"is_causal": false}));
    let exported =
        assert_round_trip_with_findings(&draft_checkpoint(config, &layers, &TOP_TENSORS)).config;
    assert_eq!(exported["dflash_config"]["target_layer_ids"], json!([1, 3]));
    assert_eq!(exported["dflash_config"]["mask_token_id"], 5);
    assert_eq!(exported["is_causal"], false);
}

#[test]
pub fn dspark_qwen3_round_trip() {
    let (config, layers) = dflash_parts(
        "Qwen3DSparkModel",
        json!({"draft_vocab_size": 3, "sample_from_anchor": false}),
    );
    let extra: [(&str, &[usize]); 5] = [
        ("markov_head.markov_w1.weight", &[VOCAB, 8]),
        ("markov_head.markov_w2.weight", &[3, 8]),
        ("confidence_head.proj.weight", &[1, WIDTH + 8]),
        ("confidence_head.proj.bias", &[1]),
        ("lm_head.weight", &[3, WIDTH]),
    ];
    let others = [&TOP_TENSORS[..], &extra].concat();
    let tiny = draft_checkpoint(config.clone(), &layers, &others).integer_vector("d2t", &[0, 1, 2]);
    let exported = assert_round_trip_with_findings(&tiny).config;
    assert_eq!(exported["sample_from_anchor"], false);
    assert_eq!(exported["draft_vocab_size"], 3);
    let error = draft_checkpoint(config, &layers, &others).convert().unwrap_err().to_string();
    assert!(error.contains("`d2t`") && error.contains("the tensor is missing"), "{error}");
}

/// Converts, and returns the error of the export.
fn export_error(tiny: &Tiny) -> String {
    let path = tiny.path().join("first.gguf");
    std::fs::write(&path, tiny.convert().unwrap()).unwrap();
    let model = Model::open(&path).unwrap();
    export::plan(&model, export::ExportOptions::default()).err().unwrap().to_string()
}

#[test]
pub fn dspark_gemma4_has_no_export() {
    let kinds = vec!["full_attention"; LAYERS];
    let (mut config, mut layers) = dflash_parts(
        "Gemma4DSparkModel",
        json!({"layer_types": kinds, "attention_k_eq_v": true,
        "global_head_dim": HEAD, "num_global_key_value_heads": KV}),
    );
    config["model_type"] = "gemma4_text".into();
    for layer in &mut layers {
        layer.retain(|(name, _)| !name.contains("v_proj"));
        layer.extend(norms(&["pre_feedforward_layernorm", "post_feedforward_layernorm"]));
        layer.push(("model.layers.{}.layer_scalar".into(), vec![1]));
    }
    let markov: [(&str, &[usize]); 2] = [
        ("markov_head.markov_w1.weight", &[VOCAB, 8]),
        ("markov_head.markov_w2.weight", &[VOCAB, 8]),
    ];
    let tiny = draft_checkpoint(config, &layers, &[&TOP_TENSORS[..], &markov].concat());
    let factors = elements(&tiny.convert().unwrap(), "rope_freqs.weight");
    assert_eq!(factors, [[1.0; 2], [1e30; 2], [1e30; 2], [1e30; 2]].concat());
    let why = export_error(&tiny);
    assert!(why.contains("the class of this dflash model"), "{why}");
}

#[test]
pub fn muse_glimmer_assistant_exports_as_dflash() {
    let kinds = vec!["sliding_attention"; LAYERS];
    let (mut config, layers) = dflash_parts(
        "MuseGlimmerAssistantModel",
        json!({"block_size": 4, "mask_token_id": 5,
        "target_layer_ids": [1, 3], "sliding_window": 16, "layer_types": kinds}),
    );
    config["dflash_config"] = Value::Null;
    let exported =
        assert_round_trip_with_findings(&draft_checkpoint(config, &layers, &TOP_TENSORS)).config;
    assert_eq!(exported["architectures"], json!(["DFlashDraftModel"]));
    assert_eq!(exported["dflash_config"]["target_layer_ids"], json!([1, 3]));
}
