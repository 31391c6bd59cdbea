//! Deci (Nemotron-NAS).

use serde_json::json;

use crate::fixtures::decoder::{
    HEADS, NamedShape, UNTIED, WIDTH, attention, checkpoint, config, gated_ffn, layer_weight,
    llama_layer, norms, with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn deci_round_trip() {
    let kind = |in_group: Option<u32>, linear: bool, share: Option<f64>| {
        json!({"attention": {"n_heads_in_group": in_group, "replace_with_linear": linear},
            "ffn": {"ffn_mult": share}})
    };
    // Feed-forward widths are multiples of 256.
    let kinds = [
        kind(Some(2), false, Some(2.0)),
        kind(None, true, Some(2.0)),
        kind(None, false, Some(2.0)),
        kind(None, false, None),
    ];
    let fields = with_rms_norm(json!({"block_configs": kinds, "num_key_value_heads": null}));
    let mut tiny = checkpoint(config("DeciLMForCausalLM", "nemotron-nas", fields), vec![], UNTIED);
    let of_layer = |layer: usize, listed: Vec<NamedShape>| {
        let filled = |(name, shape): NamedShape| (name.replace("{}", &layer.to_string()), shape);
        listed.into_iter().map(filled).collect::<Vec<_>>()
    };
    let network = [norms(&["post_attention_layernorm"]), gated_ffn("mlp", 256)].concat();
    let linear = vec![layer_weight("self_attn.linear_attn", &[WIDTH, WIDTH])];
    let all = [
        of_layer(0, [norms(&["input_layernorm"]), attention(), network.clone()].concat()),
        of_layer(1, [norms(&["input_layernorm"]), linear, network.clone()].concat()),
        of_layer(2, network),
    ]
    .concat();
    for (name, shape) in &all {
        tiny = tiny.tensors(&[(name, shape)]);
    }
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["block_configs"][1]["attention"]["replace_with_linear"], true);
    assert_eq!(exported["num_attention_heads"], HEADS);
    // The first Deci models list key heads per layer.
    let fields = with_rms_norm(json!({"num_key_value_heads_per_layer": [2, 2, 2, 2]}));
    let first = config("DeciLMForCausalLM", "deci", fields);
    let exported = assert_round_trip(&checkpoint(first, llama_layer(), UNTIED)).config;
    assert_eq!(exported["num_key_value_heads_per_layer"], json!([2, 2, 2, 2]));
}
