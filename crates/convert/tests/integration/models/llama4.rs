//! Llama 4.

use serde_json::{Value, json};

use crate::fixtures::decoder::merged;
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tiny, width16};

fn llama4(fields: Value) -> Tiny {
    let all = merged(
        json!({
            "head_dim": 4, "intermediate_size": 12, "intermediate_size_mlp": 24,
            "num_local_experts": 3, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
        }),
        fields,
    );
    Tiny::new(width16::config("Llama4ForCausalLM", all))
        .byte_level(6)
        .tensors(width16::ENDS)
        .layers(2, width16::NORMS)
        .layers(2, width16::ATTENTION)
        .tensors(&[
            ("model.layers.0.feed_forward.gate_proj.weight", &[24, 16]),
            ("model.layers.0.feed_forward.up_proj.weight", &[24, 16]),
            ("model.layers.0.feed_forward.down_proj.weight", &[16, 24]),
            ("model.layers.1.feed_forward.router.weight", &[3, 16]),
            ("model.layers.1.feed_forward.shared_expert.gate_proj.weight", &[12, 16]),
            ("model.layers.1.feed_forward.shared_expert.up_proj.weight", &[12, 16]),
            ("model.layers.1.feed_forward.shared_expert.down_proj.weight", &[16, 12]),
            ("model.layers.1.feed_forward.experts.gate_up_proj", &[3, 16, 24]),
            ("model.layers.1.feed_forward.experts.down_proj", &[3, 12, 16]),
        ])
}

#[test]
pub fn llama4_round_trip() {
    let config = assert_round_trip(&llama4(json!({}))).config;
    assert_eq!(
        (&config["intermediate_size"], &config["intermediate_size_mlp"]),
        (&json!(12), &json!(24))
    );
    assert_round_trip(&llama4(json!({"layer_types": ["full_attention", "full_attention"]})));
}
