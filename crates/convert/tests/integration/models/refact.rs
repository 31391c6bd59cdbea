//! Refact.

use serde_json::json;

use crate::fixtures::decoder::{
    HEAD, HEADS, LAYERS, NamedShape, VOCAB, WIDTH, checkpoint_with_names,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn refact_round_trip() {
    const INNER: usize = 256;
    let layer: Vec<NamedShape> = [
        ("ln_1", &[WIDTH][..]),
        ("attn.q", &[WIDTH, WIDTH]),
        ("attn.kv", &[2 * HEAD, WIDTH]),
        ("attn.c_proj", &[WIDTH, WIDTH]),
        ("ln_2", &[WIDTH]),
        ("mlp.gate_up_proj", &[2 * INNER, WIDTH]),
        ("mlp.c_proj", &[WIDTH, INNER]),
    ]
    .map(|(name, shape)| (format!("transformer.h.{{}}.{name}.weight"), shape.to_vec()))
    .to_vec();
    let config = json!({"architectures": ["GPTRefactForCausalLM"], "model_type": "gpt_refact",
        "n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": 256,
        "vocab_size": VOCAB, "layer_norm_epsilon": 1e-5, "multi_query": true});
    let top = [("transformer.wte", &[VOCAB, WIDTH][..]), ("transformer.ln_f", &[WIDTH])];
    assert_round_trip(&checkpoint_with_names(config, &top, &layer));
}
