//! Cohere Command R, Command R7B and Cohere 2 MoE.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, LAYERS, PROJECTIONS, TIED, WIDTH, attention,
    checkpoint, config, expert_ffns, gated_ffn, layer_weight, norms,
};
use crate::fixtures::round_trip::{assert_config_round_trip, assert_round_trip};

#[test]
pub fn cohere2_moe_round_trip() {
    let attention = [norms(&["input_layernorm"]), attention()].concat();
    let fields = json!({"layer_norm_eps": 1e-5, "rope_theta": 5e4, "head_dim": HEAD,
        "intermediate_size": EXPERT_FF, "prefix_dense_intermediate_size": FF,
        "first_k_dense_replace": 1, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "num_shared_experts": 1, "expert_selection_fn": "sigmoid", "norm_topk_prob": true,
        "logit_scale": 0.25, "sliding_window": 32, "layer_types": ["sliding_attention",
            "sliding_attention", "sliding_attention", "full_attention"]});
    let config = config("Cohere2MoeForCausalLM", "cohere2_moe", fields);
    let mut tiny = checkpoint(config, vec![attention], TIED);
    let routed = [
        vec![layer_weight("mlp.gate", &[EXPERTS, WIDTH])],
        expert_ffns("mlp", PROJECTIONS),
        gated_ffn("mlp.shared_experts", EXPERT_FF),
    ];
    for layer in 0..LAYERS {
        let network = if layer == 0 { gated_ffn("mlp", FF) } else { routed.concat() };
        for (name, shape) in network {
            tiny = tiny.tensors(&[(&name.replace("{}", &layer.to_string()), &shape)]);
        }
    }
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["intermediate_size"], EXPERT_FF);
    assert_eq!(exported["prefix_dense_intermediate_size"], FF);
}

#[test]
pub fn cohere_and_cohere2_round_trip() {
    let block = || vec![norms(&["input_layernorm"]), attention(), gated_ffn("mlp", FF)];
    let fields = json!({"layer_norm_eps": 1e-6, "logit_scale": 0.25, "rope_theta": 8e6});
    assert_config_round_trip(config("CohereForCausalLM", "cohere", fields.clone()), block(), TIED);
    let mut long = fields.clone();
    long["model_max_length"] = json!(1024);
    let of_heads = vec![
        layer_weight("self_attn.q_norm", &[HEADS, HEAD]),
        layer_weight("self_attn.k_norm", &[KV, HEAD]),
    ];
    assert_config_round_trip(
        config("CohereForCausalLM", "cohere", long),
        [block(), vec![of_heads]].concat(),
        TIED,
    );
    let mut second = fields;
    second["sliding_window"] = json!(64);
    assert_config_round_trip(config("Cohere2ForCausalLM", "cohere2", second), block(), TIED);
}
