//! CodeShell.

use serde_json::json;

use crate::fixtures::decoder::{HEAD, HEADS, KV, VOCAB, WIDTH};
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::two_layer_model;

#[test]
pub fn codeshell_round_trip() {
    let width = (HEADS + 2 * KV) * HEAD;
    let layer: &[(&str, &[usize])] = &[
        ("transformer.h.{}.ln_1.weight", &[WIDTH]),
        ("transformer.h.{}.ln_1.bias", &[WIDTH]),
        ("transformer.h.{}.attn.c_attn.weight", &[width, WIDTH]),
        ("transformer.h.{}.attn.c_attn.bias", &[width]),
        ("transformer.h.{}.attn.c_proj.weight", &[WIDTH, WIDTH]),
        ("transformer.h.{}.attn.c_proj.bias", &[WIDTH]),
        ("transformer.h.{}.ln_2.weight", &[WIDTH]),
        ("transformer.h.{}.ln_2.bias", &[WIDTH]),
        ("transformer.h.{}.mlp.c_fc.weight", &[4 * WIDTH, WIDTH]),
        ("transformer.h.{}.mlp.c_fc.bias", &[4 * WIDTH]),
        ("transformer.h.{}.mlp.c_proj.weight", &[WIDTH, 4 * WIDTH]),
        ("transformer.h.{}.mlp.c_proj.bias", &[WIDTH]),
    ];
    let top: &[(&str, &[usize])] = &[
        ("transformer.wte.weight", &[VOCAB, WIDTH]),
        ("transformer.ln_f.weight", &[WIDTH]),
        ("transformer.ln_f.bias", &[WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
    ];
    let fields = json!({"model_type": "codeshell", "n_embd": WIDTH, "n_head": HEADS, "n_layer": 2,
        "n_positions": 64, "layer_norm_epsilon": 1e-5, "num_query_groups": KV});
    let exported =
        assert_round_trip(&two_layer_model("CodeShellForCausalLM", fields, top, layer)).config;
    assert_eq!(exported["num_query_groups"], KV);
}
