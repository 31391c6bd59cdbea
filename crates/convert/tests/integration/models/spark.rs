//! Spark 2.5.

use serde_json::json;

use crate::fixtures::decoder::{
    FF, HEAD, HEADS, KV, TIED, WIDTH, checkpoint, config, gated_ffn, layer_weight, pre_norms,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn spark2_5_round_trip() {
    let own = vec![
        layer_weight("self_attn.q_k_v_proj", &[(HEADS + 2 * KV) * HEAD, WIDTH]),
        layer_weight("self_attn.g_proj", &[HEADS, WIDTH]),
        layer_weight("self_attn.o_proj", &[WIDTH, HEADS * HEAD]),
    ];
    let layer = vec![pre_norms(), own, gated_ffn("mlp", FF)];
    let parameters = json!({
        "full_attention": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4,
            "partial_rotary_factor": 1.0},
    });
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "sliding_window": 32,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
            "full_attention"], "rope_parameters": parameters});
    let tiny = checkpoint(config("Spark2_5ForCausalLM", "spark2_5", fields), layer, TIED);
    assert_eq!(assert_round_trip(&tiny).config["rope_parameters"], parameters);
}
