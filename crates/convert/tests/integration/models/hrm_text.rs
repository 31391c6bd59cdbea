//! HRM Text.

use serde_json::json;

use crate::fixtures::Tiny;
use crate::fixtures::decoder::{FF, HEAD, HEADS, VOCAB, WIDTH, config, with_rms_norm};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn hrm_text_round_trip() {
    const STACK_LAYERS: usize = 2;
    let fields =
        with_rms_norm(json!({"head_dim": HEAD, "num_key_value_heads": null, "H_cycles": 2,
        "L_cycles": 1, "num_layers_per_stack": STACK_LAYERS, "num_hidden_layers": 8,
        "embedding_scale": 50.0, "prefix_lm": true}));
    let mut tiny = Tiny::new(config("HrmTextForCausalLM", "hrm_text", fields)).byte_level(VOCAB);
    tiny = tiny.tensors(&[
        ("model.embed_tokens.weight", &[VOCAB, WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
        ("model.z_L_init", &[WIDTH]),
    ]);
    for stack in ["L", "H"] {
        for (name, shape) in [
            ("attn.gqkv_proj", [4 * HEADS * HEAD, WIDTH]),
            ("attn.o_proj", [WIDTH, HEADS * HEAD]),
            ("mlp.gate_up_proj", [2 * FF, WIDTH]),
            ("mlp.down_proj", [WIDTH, FF]),
        ] {
            let name = format!("model.{stack}_module.layers.{{}}.{name}.weight");
            tiny = tiny.layers(STACK_LAYERS, &[(&name, &shape)]);
        }
    }
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["num_layers_per_stack"], STACK_LAYERS);
    assert_eq!(exported["num_hidden_layers"], 8);
}
