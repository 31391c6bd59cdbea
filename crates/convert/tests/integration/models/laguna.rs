//! Laguna.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, KV, PROJECTIONS, TIED, WIDTH, alternating_layers, attention_of,
    checkpoint, config, expert_ffns, gated_ffn, layer_tensor, layer_weight, pre_norms, qk_norms,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn laguna_round_trip() {
    let rope = json!({
        "full_attention": {"rope_type": "yarn", "rope_theta": 5e5, "partial_rotary_factor": 0.5,
            "factor": 8, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0},
    });
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "sliding_window": 16,
        "num_attention_heads_per_layer": [4, 6, 4, 6], "num_attention_heads": 6,
        "mlp_layer_types": ["sparse", "sparse", "sparse", "sparse"], "num_experts": EXPERTS,
        "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "gating": "per-head",
        "shared_expert_intermediate_size": EXPERT_FF, "moe_routed_scaling_factor": 2.5,
        "rope_parameters": rope});
    let network = [
        vec![
            layer_weight("mlp.gate", &[EXPERTS, WIDTH]),
            layer_tensor("mlp.experts.e_score_correction_bias", &[EXPERTS]),
        ],
        expert_ffns("mlp", PROJECTIONS),
        gated_ffn("mlp.shared_expert", EXPERT_FF),
    ]
    .concat();
    let attention_with_gate = |count: usize| {
        [attention_of(count, KV, HEAD), vec![layer_weight("self_attn.g_proj", &[count, WIDTH])]]
            .concat()
    };
    let every = vec![pre_norms(), qk_norms(), network];
    let tiny = checkpoint(config("LagunaForCausalLM", "laguna", fields), every, TIED);
    let exported = assert_round_trip(&alternating_layers(
        tiny,
        [&attention_with_gate(4), &attention_with_gate(6)],
    ))
    .config;
    assert_eq!(exported["num_attention_heads_per_layer"], json!([4, 6, 4, 6]));
    assert_eq!(exported["rope_parameters"], rope);
    assert_eq!(exported["gating"], "per-head");
}
