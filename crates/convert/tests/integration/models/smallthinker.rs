//! SmallThinker.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, TIED, WIDTH, attention, checkpoint, config, expert_ffns,
    layer_weight, pre_norms, with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn smallthinker_round_trip() {
    let router = vec![layer_weight("block_sparse_moe.primary_router", &[EXPERTS, WIDTH])];
    let experts = expert_ffns("block_sparse_moe", ["gate", "down", "up"]);
    let layer = vec![pre_norms(), attention(), router, experts];
    let fields = with_rms_norm(json!({"head_dim": HEAD, "moe_num_primary_experts": EXPERTS,
        "moe_num_active_primary_experts": 2, "moe_ffn_hidden_size": EXPERT_FF,
        "moe_primary_router_apply_softmax": false, "sliding_window_size": 32,
        "sliding_window_layout": [0, 1, 1, 1]}));
    let mut config = config("SmallThinkerForCausalLM", "smallthinker", fields);
    config.as_object_mut().unwrap().remove("intermediate_size");
    let exported = assert_round_trip(&checkpoint(config, layer, TIED)).config;
    assert_eq!(exported["sliding_window_layout"], json!([0, 1, 1, 1]));
    assert_eq!(exported["moe_primary_router_apply_softmax"], false);
}
