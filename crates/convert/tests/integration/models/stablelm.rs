//! StableLM.

use serde_json::json;

use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{two_layer_model, width8};

#[test]
pub fn stablelm_round_trip_with_norms_per_head() {
    let config = width8::config(json!({
        "layer_norm_eps": 1e-5, "use_parallel_residual": true, "partial_rotary_factor": 1.0,
        "qk_layernorm": true, "rope_theta": 1e6,
    }));
    let mut stablelm = two_layer_model(
        "StableLmForCausalLM",
        config,
        width8::ENDS,
        &[&width8::NORMS[..1], &width8::NORM_BIASES[..1], width8::ATTENTION, width8::GATED_FFN]
            .concat(),
    )
    .tensors(&[("model.norm.bias", &[8])]);
    for (kind, heads) in [("q", 4), ("k", 2)] {
        for head in 0..heads {
            let name = format!("model.layers.{{}}.self_attn.{kind}_layernorm.norms.{head}.weight");
            stablelm = stablelm.layers(2, &[(&name, &[2])]);
        }
    }
    assert_round_trip(&stablelm);
}
