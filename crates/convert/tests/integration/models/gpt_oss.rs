//! gpt-oss.

use serde_json::json;

use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tiny, assert_valid, width16};

#[test]
pub fn gpt_oss_round_trip() {
    let scaling = json!({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "truncate": false, "original_max_position_embeddings": 64});
    let fields = json!({
        "head_dim": 4, "sliding_window": 32, "num_local_experts": 3, "num_experts_per_tok": 2,
        "rope_theta": 150000.0, "rope_scaling": scaling,
    });
    let tiny = Tiny::new(width16::config("GptOssForCausalLM", fields))
        .byte_level(6)
        .tensors(width16::ENDS)
        .layers(2, width16::NORMS)
        .layers(2, width16::ATTENTION)
        .layers(
            2,
            &[
                ("model.layers.{}.self_attn.q_proj.bias", &[16]),
                ("model.layers.{}.self_attn.k_proj.bias", &[8]),
                ("model.layers.{}.self_attn.v_proj.bias", &[8]),
                ("model.layers.{}.self_attn.o_proj.bias", &[16]),
                ("model.layers.{}.self_attn.sinks", &[4]),
                ("model.layers.{}.mlp.router.weight", &[3, 16]),
                ("model.layers.{}.mlp.router.bias", &[3]),
                ("model.layers.{}.mlp.experts.gate_up_proj", &[3, 16, 48]),
                ("model.layers.{}.mlp.experts.gate_up_proj_bias", &[3, 48]),
                ("model.layers.{}.mlp.experts.down_proj", &[3, 24, 16]),
                ("model.layers.{}.mlp.experts.down_proj_bias", &[3, 16]),
            ],
        );
    assert_valid(&tiny.convert().unwrap());
    let config = assert_round_trip(&tiny).config;
    assert_eq!(config["rope_scaling"]["truncate"], false);
}
