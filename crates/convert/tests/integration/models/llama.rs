//! Llama, and models that differ from it in a few keys or tensors.

use std::path::Path;

use serde_json::json;

use crate::fixtures::decoder::{
    FF, HEAD, HEADS, KV, TIED, UNTIED, WIDTH, attention, checkpoint, config, ffn, gated_ffn,
    layer_tensor, layer_weight, llama_config, llama_layer, pre_norms, qk_norms, qkv_biases,
    with_rms_norm,
};
use crate::fixtures::round_trip::{
    assert_config_round_trip, assert_gguf_round_trip, assert_gguf_round_trip_in_shards,
    assert_round_trip, assert_round_trip_with_findings, export_after_edit,
};
use crate::fixtures::tokenizer_files::use_sentencepiece;
use crate::fixtures::{Tiny, width16};

#[test]
fn llama3_rope_scaling_round_trip() {
    // The factors of Llama 4, of Llama 3, and others.
    for (high, original) in [(1.0, 8192), (4.0, 8192), (4.0, 64)] {
        let scaling = json!({"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0,
            "high_freq_factor": high, "original_max_position_embeddings": original});
        let fields = json!({"head_dim": 64, "rope_theta": 500000.0, "rope_scaling": scaling});
        let tiny = Tiny::new(width16::config("LlamaForCausalLM", fields))
            .byte_level(6)
            .tensors(width16::ENDS)
            .layers(2, width16::NORMS)
            .layers(2, width16::GATED_FFN)
            .layers(
                2,
                &[
                    ("model.layers.{}.self_attn.q_proj.weight", &[256, 16]),
                    ("model.layers.{}.self_attn.k_proj.weight", &[128, 16]),
                    ("model.layers.{}.self_attn.v_proj.weight", &[128, 16]),
                    ("model.layers.{}.self_attn.o_proj.weight", &[16, 256]),
                ],
            );
        let config = assert_round_trip(&tiny).config;
        assert_eq!(config["rope_scaling"]["original_max_position_embeddings"], original);
    }
}

#[test]
pub fn nanbeige_internlm3_and_pangu_round_trip() {
    let fields = with_rms_norm(json!({"num_loops": 2, "skip_loop_final_norm": true}));
    let nanbeige = config("NanbeigeForCausalLM", "nanbeige", fields);
    let exported = assert_round_trip(&checkpoint(nanbeige, llama_layer(), UNTIED)).config;
    assert_eq!(
        (&exported["num_loops"], &exported["skip_loop_final_norm"]),
        (&json!(2), &json!(true))
    );
    let fields = with_rms_norm(json!({"head_dim": HEAD}));
    let internlm = config("InternLM3ForCausalLM", "internlm3", fields);
    let tiny = checkpoint(internlm, llama_layer(), UNTIED);
    use_sentencepiece(&tiny);
    let exported = assert_round_trip_with_findings(&tiny).config;
    assert_eq!(exported["architectures"], json!(["LlamaForCausalLM"]));
    let bias = vec![layer_tensor("self_attn.o_proj.bias", &[WIDTH])];
    let layer = [llama_layer(), vec![bias]].concat();
    let pangu = config("PanguEmbeddedForCausalLM", "PanguEmbedded", with_rms_norm(json!({})));
    let tiny = checkpoint(pangu, layer, UNTIED);
    use_sentencepiece(&tiny);
    assert_round_trip_with_findings(&tiny);
}

#[test]
pub fn arcee_round_trip() {
    let network = ffn();
    let layer = vec![pre_norms(), attention(), network];
    assert_config_round_trip(
        config("ArceeForCausalLM", "arcee", with_rms_norm(json!({}))),
        layer,
        UNTIED,
    );
}

#[test]
pub fn llama_bidirectional_seed_oss_and_maincoder_round_trip() {
    let bare = with_rms_norm(json!({}));
    assert_config_round_trip(
        config("LlamaBidirectionalModel", "llama_bidirec", bare),
        llama_layer(),
        TIED,
    );
    let wide = with_rms_norm(json!({"head_dim": HEAD}));
    assert_config_round_trip(
        config("SeedOssForCausalLM", "seed_oss", wide.clone()),
        llama_layer(),
        UNTIED,
    );
    let normed = [llama_layer(), vec![qk_norms()]].concat();
    assert_config_round_trip(config("MaincoderForCausalLM", "maincoder", wide), normed, UNTIED);
}

#[test]
pub fn llama_round_trip_with_biases_and_head_dim() {
    assert_config_round_trip(llama_config(json!({})), llama_layer(), TIED);
    let biased = [llama_layer(), vec![qkv_biases()]].concat();
    assert_config_round_trip(llama_config(json!({"attention_bias": true})), biased, UNTIED);
    // Mistral without a sliding window exports as Llama: both compute the same.
    let mistral = config("MistralForCausalLM", "mistral", json!({"rms_norm_eps": 1e-6}));
    let mistral = checkpoint(mistral, llama_layer(), UNTIED);
    mistral.convert().unwrap();
    assert_gguf_round_trip(mistral.path());
    let wide = vec![
        pre_norms(),
        vec![
            layer_weight("self_attn.q_proj", &[HEADS * 32, WIDTH]),
            layer_weight("self_attn.k_proj", &[KV * 32, WIDTH]),
            layer_weight("self_attn.v_proj", &[KV * 32, WIDTH]),
            layer_weight("self_attn.o_proj", &[WIDTH, HEADS * 32]),
        ],
        gated_ffn("mlp", FF),
    ];
    assert_config_round_trip(llama_config(json!({"head_dim": 32})), wide, UNTIED);
}

#[test]
fn export_notes_name_lost_tensors_and_keys() {
    let other_bounds = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 3.0, "original_max_position_embeddings": 100});
    let config = llama_config(json!({"rope_scaling": other_bounds}));
    let (config, notes) = export_after_edit(&checkpoint(config, llama_layer(), TIED), |_| {});
    assert_eq!(config.get("rope_scaling"), None);
    assert_eq!(notes, ["skipped `rope_freqs.weight`: config.json cannot express it"]);
    let (_, notes) =
        export_after_edit(&checkpoint(llama_config(json!({})), llama_layer(), TIED), |keys| {
            keys.set("llama.rope.dimension_count", 8u32);
            keys.remove("llama.vocab_size");
        });
    let key = |key| format!("`llama.{key}`");
    let changed = format!("converting the export changes {}", key("rope.dimension_count"));
    assert_eq!(notes, [changed, format!("converting the export adds {}", key("vocab_size"))]);
}

#[test]
pub fn rope_scaling_types_round_trip() {
    let llama3 = |factor: f64, original: u32| {
        json!({"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": original})
    };
    for scaling in [
        json!({"type": "linear", "factor": 4.0}),
        json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}),
        json!({"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 64,
            "beta_fast": 32.0, "beta_slow": 1.5, "attention_factor": 1.25,
            "extrapolation_factor": 0.5}),
        llama3(8.0, 8192),
        llama3(32.0, 8192),
        llama3(8.0, 64),
        llama3(4.5, 1024),
    ] {
        assert_config_round_trip(
            llama_config(json!({"rope_scaling": scaling})),
            llama_layer(),
            UNTIED,
        );
        let qwen = json!({"rms_norm_eps": 1e-6, "rope_theta": 1e6, "rope_scaling": scaling});
        if scaling["rope_type"] != "llama3" {
            assert_config_round_trip(
                config("Qwen2ForCausalLM", "qwen2", qwen.clone()),
                llama_layer(),
                UNTIED,
            );
        }
        assert_config_round_trip(
            config("GraniteForCausalLM", "granite", qwen),
            llama_layer(),
            UNTIED,
        );
    }
}

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

#[test]
fn demo_model_round_trip() {
    assert_gguf_round_trip(Path::new(MODEL));
    assert_gguf_round_trip_in_shards(Path::new(MODEL), 1_000_000);
}
