//! Grok-1 and Grok-2.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, UNTIED, VOCAB, WIDTH, attention, checkpoint,
    checkpoint_with_names, config, expert_ffns, gated_ffn, layer_weight, merged, norms,
    with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip;

fn grok_config(class: &str, kind: &str, fields: Value) -> Value {
    let all = with_rms_norm(json!({"num_local_experts": EXPERTS, "num_experts_per_tok": 2,
        "embedding_multiplier_scale": 78.5, "output_multiplier_scale": 0.5,
        "attn_output_multiplier": 0.08, "attn_logit_softcapping": 30.0,
        "router_logit_softcapping": 30.0}));
    config(class, kind, merged(all, fields))
}

#[test]
pub fn grok1_and_grok2_round_trip() {
    let of_layer = |name: &str, shape: &[usize]| {
        (format!("transformer.decoder_layer.{{}}.{name}.weight"), shape.to_vec())
    };
    let mut layer = vec![
        of_layer("multi_head_attention.query", &[HEADS * HEAD, WIDTH]),
        of_layer("multi_head_attention.key", &[KV * HEAD, WIDTH]),
        of_layer("multi_head_attention.value", &[KV * HEAD, WIDTH]),
        of_layer("multi_head_attention.linear", &[WIDTH, HEADS * HEAD]),
        of_layer("router", &[EXPERTS, WIDTH]),
    ];
    for norm in ["rms_norm", "rms_norm_1", "rms_norm_2", "rms_norm_3"] {
        layer.push(of_layer(norm, &[WIDTH]));
    }
    for e in 0..EXPERTS {
        layer.push(of_layer(&format!("moe.{e}.linear"), &[FF, WIDTH]));
        layer.push(of_layer(&format!("moe.{e}.linear_v"), &[FF, WIDTH]));
        layer.push(of_layer(&format!("moe.{e}.linear_1"), &[WIDTH, FF]));
    }
    let top: [(&str, &[usize]); 2] =
        [("transformer.in_out_embed", &[VOCAB, WIDTH]), ("transformer.rms_norm", &[WIDTH])];
    let first = grok_config("Grok1ForCausalLM", "grok-1", json!({}));
    let exported = assert_round_trip(&checkpoint_with_names(first, &top, &layer)).config;
    assert_eq!(exported["embedding_multiplier_scale"], 78.5);

    let stretched = json!({"rope_type": "yarn", "scaling_factor": 16.0, "extrapolation_factor": 1.0,
        "attn_factor": 1.0, "beta_fast": 8.0, "beta_slow": 1.0, "moe_intermediate_size": EXPERT_FF,
        "original_max_position_embeddings": 64, "final_logit_softcapping": 50.0,
        "attn_temperature_len": 64, "head_dim": HEAD});
    let names = ["pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm"];
    let router = vec![layer_weight("block_sparse_moe.gate", &[EXPERTS, WIDTH])];
    let layer = vec![
        norms(&names),
        attention(),
        router,
        expert_ffns("block_sparse_moe", ["w1", "w2", "w3"]),
        gated_ffn("mlp", FF),
    ];
    let second = grok_config("GrokForCausalLM", "grok-2", stretched);
    let exported = assert_round_trip(&checkpoint(second, layer, UNTIED)).config;
    assert_eq!(exported["architectures"], json!(["GrokForCausalLM"]));
    assert_eq!(exported["scaling_factor"].as_f64(), Some(16.0));
}
