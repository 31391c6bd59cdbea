//! SmolLM3.

use serde_json::json;

use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{two_layer_model, width8};

#[test]
pub fn smollm3_round_trip() {
    let layer = [width8::NORMS, width8::ATTENTION, width8::GATED_FFN].concat();
    for base in [1e4, 5e6] {
        let config = width8::config(json!({"rms_norm_eps": 1e-6, "rope_theta": base}));
        assert_round_trip(&two_layer_model(
            "SmolLM3ForCausalLM",
            config,
            &width8::ENDS[..2],
            &layer,
        ));
    }
}
