//! Arcee Trinity (AFMoE).

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, HEADS, UNTIED, WIDTH, attention, checkpoint, config, layer_weight,
    moe_parts, norms, qk_norms,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn afmoe_round_trip() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
        "num_experts": EXPERTS, "num_shared_experts": 1, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "num_dense_layers": 0, "route_norm": true,
        "route_scale": 2.5, "score_func": "sigmoid", "mup_enabled": true, "sliding_window": 32});
    let norms = norms(&[
        "input_layernorm",
        "post_attention_layernorm",
        "pre_mlp_layernorm",
        "post_mlp_layernorm",
    ]);
    let mut network = moe_parts();
    network[0] = vec![
        layer_weight("mlp.router.gate", &[EXPERTS, WIDTH]),
        ("model.layers.{}.mlp.expert_bias".into(), vec![EXPERTS]),
    ];
    let gate = vec![layer_weight("self_attn.gate_proj", &[HEADS * HEAD, WIDTH])];
    let layer = [vec![norms, attention(), gate, qk_norms()], network].concat();
    let config = config("AfmoeForCausalLM", "afmoe", fields);
    let exported = assert_round_trip(&checkpoint(config, layer, UNTIED)).config;
    assert_eq!(exported["score_func"], "sigmoid");
    assert_eq!(exported["route_scale"], 2.5);
}
