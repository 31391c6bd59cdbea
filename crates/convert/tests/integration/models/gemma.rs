//! Gemma, Gemma 2, Gemma 3 and Gemma 3n.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    FF, HEAD, LAYERS, TIED, VOCAB, WIDTH, alternating_types, attention, checkpoint, config,
    gated_ffn, layer_tensor, layer_weight, llama_layer, merged, norms, qk_norms,
};
use crate::fixtures::round_trip::{assert_config_round_trip, assert_round_trip, export_after_edit};
use crate::fixtures::sliding_window;

#[test]
pub fn gemma_gemma2_and_gemma3_round_trip() {
    let first = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6});
    assert_config_round_trip(
        config("GemmaForCausalLM", "gemma", first.clone()),
        llama_layer(),
        TIED,
    );
    let unusual = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 5e4});
    assert_config_round_trip(config("GemmaForCausalLM", "gemma", unusual), llama_layer(), TIED);
    let block = || {
        let norms = norms(&["pre_feedforward_layernorm", "post_feedforward_layernorm"]);
        [llama_layer(), vec![norms]].concat()
    };
    let second = merged(first, json!({"query_pre_attn_scalar": HEAD}));
    assert_config_round_trip(config("Gemma2ForCausalLM", "gemma2", second), block(), TIED);
    let capped = json!({"head_dim": HEAD, "query_pre_attn_scalar": HEAD, "attn_logit_softcapping": 40.0,
        "final_logit_softcapping": 20.0, "sliding_window": 16});
    assert_config_round_trip(config("Gemma2ForCausalLM", "gemma2", capped), block(), TIED);
    let heads = qk_norms();
    for fields in [
        json!({"head_dim": HEAD, "query_pre_attn_scalar": HEAD, "sliding_window": 16, "rope_theta": 1e6,
            "rope_local_base_freq": 2e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
        json!({"head_dim": HEAD, "query_pre_attn_scalar": HEAD, "sliding_window": 16, "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}),
        json!({"head_dim": HEAD, "query_pre_attn_scalar": HEAD, "sliding_window_pattern": 1, "final_logit_softcapping": 30.0}),
    ] {
        let config = config("Gemma3ForCausalLM", "gemma3_text", fields);
        assert_config_round_trip(config, [block(), vec![heads.clone()]].concat(), TIED);
    }
    // Runtimes recognize Gemma 2 27B by its number of layers, and scale its attention by another factor.
    let fields = json!({"head_dim": HEAD, "query_pre_attn_scalar": HEAD, "rms_norm_eps": 1e-6});
    let second = checkpoint(config("Gemma2ForCausalLM", "gemma2", fields), block(), TIED);
    for (blocks, scalar) in [(4, 32), (46, 16)] {
        let (config, _) = export_after_edit(&second, |metadata| {
            metadata.set("gemma2.attention.key_length", 32u32);
            metadata.set("gemma2.block_count", blocks as u32);
        });
        assert_eq!(config["query_pre_attn_scalar"], scalar);
    }
}

#[test]
pub fn gemma3n_round_trip() {
    const PER_LAYER: usize = 8;
    const STREAMS: usize = 4;
    let mut layer = vec![
        norms(&[
            "input_layernorm",
            "post_attention_layernorm",
            "pre_feedforward_layernorm",
            "post_feedforward_layernorm",
            "post_per_layer_input_norm",
            "altup.router_norm",
            "laurel.post_laurel_norm",
        ]),
        attention(),
        qk_norms(),
        gated_ffn("mlp", FF),
    ];
    layer.push(vec![
        layer_weight("per_layer_input_gate", &[PER_LAYER, WIDTH]),
        layer_weight("per_layer_projection", &[WIDTH, PER_LAYER]),
        layer_weight("altup.correction_coefs", &[STREAMS, STREAMS]),
        layer_weight("altup.prediction_coefs", &[STREAMS * STREAMS, STREAMS]),
        layer_weight("altup.modality_router", &[STREAMS, WIDTH]),
        layer_tensor("altup.correct_output_scale", &[WIDTH]),
        layer_weight("laurel.linear_left", &[PER_LAYER, WIDTH]),
        layer_weight("laurel.linear_right", &[WIDTH, PER_LAYER]),
    ]);
    let kinds = alternating_types(["sliding_attention", "full_attention"]);
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "rope_theta": 1e6,
        "rope_local_base_freq": 1e4, "sliding_window": 16, "layer_types": kinds,
        "intermediate_size": [FF, FF, FF, FF], "hidden_size_per_layer_input": PER_LAYER,
        "num_kv_shared_layers": 0, "activation_sparsity_pattern": [0.95, 0.9, 0.0, 0.0]});
    let config = config("Gemma3nForCausalLM", "gemma3n_text", fields);
    let mut tiny = checkpoint(config, layer, TIED).tensors(&[
        ("model.embed_tokens_per_layer.weight", &[VOCAB, LAYERS * PER_LAYER]),
        ("model.per_layer_model_projection.weight", &[LAYERS * PER_LAYER, WIDTH]),
        ("model.per_layer_projection_norm.weight", &[PER_LAYER]),
    ]);
    for stream in 0..STREAMS - 1 {
        for part in ["altup_projections", "altup_unembed_projections"] {
            tiny = tiny.tensors(&[(&format!("model.{part}.{stream}.weight"), &[WIDTH, WIDTH])]);
        }
    }
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["activation_sparsity_pattern"], json!([0.95, 0.9, 0.0, 0.0]));
    assert_eq!(exported["intermediate_size"], json!([FF, FF, FF, FF]));
}

#[test]
fn unusual_sliding_window_patterns_are_written() {
    let more = norms(&["pre_feedforward_layernorm", "post_feedforward_layernorm"]);
    let layer = || [llama_layer(), vec![more.clone()]].concat();
    let second = |fields: Value| {
        let all = merged(
            json!({"head_dim": HEAD, "query_pre_attn_scalar": HEAD, "sliding_window": 16}),
            fields,
        );
        checkpoint(config("Gemma2ForCausalLM", "gemma2", all), layer(), TIED)
    };
    let (windowed, whole) = ("sliding_attention", "full_attention");
    assert_eq!(sliding_window(&second(json!({}))), [json!(16), Value::Null]);
    let usual = json!({"layer_types": [windowed, whole, windowed, whole]});
    assert_eq!(sliding_window(&second(usual)), [json!(16), Value::Null]);
    let unusual = json!({"layer_types": [whole, windowed, windowed, whole]});
    assert_eq!(sliding_window(&second(unusual)), [json!(16), json!([false, true, true, false])]);
    let heads = qk_norms();
    let third = json!({"head_dim": HEAD, "query_pre_attn_scalar": HEAD, "sliding_window": 16, "sliding_window_pattern": 2});
    let third = config("Gemma3ForCausalLM", "gemma3_text", third);
    let third = checkpoint(third, [layer(), vec![heads]].concat(), TIED);
    assert_eq!(sliding_window(&third), [json!(16), json!([true, false, true, false])]);
}
