//! Chameleon and CogVLM.

use serde_json::json;

use crate::fixtures::decoder::{
    FF, HEAD, HEADS, KV, UNTIED, WIDTH, checkpoint, config, gated_ffn, layer_tensor, layer_weight,
    llama_layer, pre_norms, with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn chameleon_and_cogvlm_round_trip() {
    let mut layer = llama_layer();
    for (part, heads) in [("q", HEADS), ("k", KV)] {
        for end in ["weight", "bias"] {
            layer.push(vec![layer_tensor(&format!("self_attn.{part}_norm.{end}"), &[heads, HEAD])]);
        }
    }
    let chameleon = "ChameleonForConditionalGeneration";
    let fields = with_rms_norm(json!({"swin_norm": true}));
    let exported =
        assert_round_trip(&checkpoint(config(chameleon, "chameleon", fields), layer, UNTIED));
    assert_eq!(exported.config["swin_norm"], true);
    let mut layer = pre_norms();
    for expert in ["language", "vision"] {
        layer.push(layer_weight(
            &format!("self_attn.{expert}_expert_query_key_value"),
            &[3 * WIDTH, WIDTH],
        ));
        layer.push(layer_weight(&format!("self_attn.{expert}_expert_dense"), &[WIDTH, WIDTH]));
        layer.extend(gated_ffn(&format!("mlp.{expert}_mlp"), FF));
    }
    let fields = with_rms_norm(json!({"num_key_value_heads": null}));
    let cogvlm = config("CogVLMForCausalLM", "cogvlm", fields);
    assert_round_trip(&checkpoint(cogvlm, vec![layer], UNTIED));
}
