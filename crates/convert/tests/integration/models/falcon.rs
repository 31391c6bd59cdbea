//! Falcon.

use serde_json::{Value, json};

use crate::fixtures::decoder::merged;
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{
    Tensors, Tiny, assert_valid, elements, gather_rows, metadata_value, two_layer_model,
};

/// Tensors outside of layers.
const FALCON: Tensors = &[
    ("transformer.word_embeddings.weight", &[6, 8]),
    ("transformer.ln_f.weight", &[8]),
    ("transformer.ln_f.bias", &[8]),
    ("lm_head.weight", &[6, 8]),
];

const FALCON_LAYER: Tensors = &[
    ("transformer.h.{}.self_attention.dense.weight", &[8, 8]),
    ("transformer.h.{}.mlp.dense_h_to_4h.weight", &[24, 8]),
    ("transformer.h.{}.mlp.dense_4h_to_h.weight", &[8, 24]),
];

const ONE_NORM: Tensors = &[
    ("transformer.h.{}.input_layernorm.weight", &[8]),
    ("transformer.h.{}.input_layernorm.bias", &[8]),
];
const TWO_NORMS: Tensors = &[
    ("transformer.h.{}.ln_attn.weight", &[8]),
    ("transformer.h.{}.ln_attn.bias", &[8]),
    ("transformer.h.{}.ln_mlp.weight", &[8]),
    ("transformer.h.{}.ln_mlp.bias", &[8]),
];

/// Builds Falcon with two layers, and this number of fused query, key and value rows.
fn falcon(fields: Value, norms: Tensors, qkv: usize) -> Tiny {
    let all = json!({
        "hidden_size": 8, "num_attention_heads": 4, "num_hidden_layers": 2,
        "layer_norm_epsilon": 1e-5, "rope_theta": 500000.0, "ffn_hidden_size": 24,
        "max_position_embeddings": 8192,
    });
    two_layer_model("FalconForCausalLM", merged(all, fields), FALCON, FALCON_LAYER)
        .layers(2, norms)
        .layers(2, &[("transformer.h.{}.self_attention.query_key_value.weight", &[qkv, 8])])
}

#[test]
pub fn falcon_round_trip_in_every_layout() {
    // Multi-query attention; the new decoder, with and without a norm of its own for the feed-forward network;
    // multi-head attention.
    for (fields, norms, qkv) in [
        (json!({"multi_query": true}), ONE_NORM, 12),
        (json!({"num_kv_heads": 2, "new_decoder_architecture": true}), TWO_NORMS, 16),
        (
            json!({"num_kv_heads": 2, "new_decoder_architecture": true,
                "num_ln_in_parallel_attn": 1}),
            ONE_NORM,
            16,
        ),
        (json!({"multi_query": false}), ONE_NORM, 24),
    ] {
        let tiny = falcon(fields, norms, qkv);
        let gguf = assert_round_trip(&tiny).gguf;
        let name = norms.last().unwrap().0.replace("{}", "1");
        assert_eq!(elements(&gguf, "blk.1.attn_norm.bias"), tiny.values(&name));
    }
}

#[test]
fn falcon_new_decoder_splits_grouped_heads() {
    let fields = json!({"num_kv_heads": 2, "new_decoder_architecture": true});
    let tiny = falcon(fields, TWO_NORMS, 16);
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "falcon.attention.head_count_kv"), 2);
    assert_eq!(metadata_value(&gguf, "falcon.context_length"), 8192);
    assert_eq!(metadata_value(&gguf, "falcon.rope.freq_base"), 500000.0);
    let order = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];
    let stored = tiny.values("transformer.h.0.self_attention.query_key_value.weight");
    assert_eq!(elements(&gguf, "blk.0.attn_qkv.weight"), gather_rows(&stored, 8, &order));
    let norm = |name: &str| tiny.values(&format!("transformer.h.0.{name}.weight"));
    assert_eq!(elements(&gguf, "blk.0.attn_norm.weight"), norm("ln_mlp"));
    assert_eq!(elements(&gguf, "blk.0.attn_norm_2.weight"), norm("ln_attn"));
}
