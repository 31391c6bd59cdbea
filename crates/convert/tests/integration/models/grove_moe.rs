//! GroveMoE.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, PROJECTIONS, UNTIED, WIDTH, attention, checkpoint, config,
    expert_ffns, gated_ffn, layer_weight, pre_norms, qk_norms, with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn grove_moe_round_trip() {
    let fields =
        with_rms_norm(json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF}));
    let mut layer = [pre_norms(), attention(), qk_norms()].concat();
    layer.push(layer_weight("mlp.gate", &[EXPERTS, WIDTH]));
    layer.extend(expert_ffns("mlp", PROJECTIONS));
    for group in 0..EXPERTS / 2 {
        layer.extend(gated_ffn(&format!("mlp.chunk_experts.{group}"), HEAD));
    }
    let grove = config("GroveMoeForCausalLM", "grove_moe", fields);
    assert_round_trip(&checkpoint(grove, vec![layer], UNTIED));
}
