//! Mellum and Maple.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, PROJECTIONS, UNTIED, WIDTH, attention, checkpoint, config,
    expert_ffns, layer_weight, merged, pre_norms, qk_norms, with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn mellum_and_maple_round_trip() {
    let experts = |fields: Value| {
        let all = with_rms_norm(
            json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
            "moe_intermediate_size": EXPERT_FF, "norm_topk_prob": true, "sliding_window": 32}),
        );
        merged(all, fields)
    };
    let router = vec![layer_weight("mlp.gate", &[EXPERTS, WIDTH])];
    let layer = vec![pre_norms(), attention(), qk_norms(), router, expert_ffns("mlp", PROJECTIONS)];
    let kinds =
        json!(["sliding_attention", "full_attention", "sliding_attention", "full_attention"]);
    let fields = experts(json!({"layer_types": kinds}));
    let mellum = checkpoint(config("MellumForCausalLM", "mellum", fields), layer.clone(), UNTIED);
    assert_eq!(assert_round_trip(&mellum).config["layer_types"], kinds);
    let fields = experts(json!({"layer_types": kinds, "nope_on_global_attention": true,
        "partial_rotary_factor": 0.5}));
    let maple = checkpoint(config("MapleForCausalLM", "maple", fields), layer, UNTIED);
    assert_eq!(assert_round_trip(&maple).config["partial_rotary_factor"], 0.5);
}
