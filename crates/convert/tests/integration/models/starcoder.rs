//! StarCoder and StarCoder2.

use serde_json::json;

use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{
    Tensors, Tiny, assert_valid, elements, gather_rows, metadata_value, two_layer_model, width8,
};

/// Builds StarCoder with two layers, and this number of fused query, key and value rows.
fn starcoder(multi_query: bool, qkv: usize) -> Tiny {
    two_layer_model(
        "GPTBigCodeForCausalLM",
        json!({
            "n_embd": 8, "n_head": 2, "n_layer": 2, "n_positions": 4, "n_inner": 16,
            "layer_norm_epsilon": 1e-5, "multi_query": multi_query,
        }),
        &[
            ("transformer.wte.weight", &[6, 8]),
            ("transformer.wpe.weight", &[4, 8]),
            ("transformer.ln_f.weight", &[8]),
            ("transformer.ln_f.bias", &[8]),
        ],
        &[
            ("transformer.h.{}.ln_1.weight", &[8]),
            ("transformer.h.{}.ln_1.bias", &[8]),
            ("transformer.h.{}.attn.c_attn.weight", &[qkv, 8]),
            ("transformer.h.{}.attn.c_attn.bias", &[qkv]),
            ("transformer.h.{}.attn.c_proj.weight", &[8, 8]),
            ("transformer.h.{}.attn.c_proj.bias", &[8]),
            ("transformer.h.{}.ln_2.weight", &[8]),
            ("transformer.h.{}.ln_2.bias", &[8]),
            ("transformer.h.{}.mlp.c_fc.weight", &[16, 8]),
            ("transformer.h.{}.mlp.c_fc.bias", &[16]),
            ("transformer.h.{}.mlp.c_proj.weight", &[8, 16]),
            ("transformer.h.{}.mlp.c_proj.bias", &[8]),
        ],
    )
}

#[test]
pub fn starcoder_round_trip_with_multi_query_and_multi_head_attention() {
    for (multi_query, qkv) in [(true, 16), (false, 24)] {
        assert_round_trip(&starcoder(multi_query, qkv));
    }
}

/// Builds StarCoder2 with two layers.
fn starcoder2() -> Tiny {
    let config = width8::config(json!({"norm_epsilon": 1e-5, "rope_theta": 999999.0}));
    let ends: Tensors = &[
        ("model.embed_tokens.weight", &[6, 8]),
        ("model.norm.weight", &[8]),
        ("model.norm.bias", &[8]),
    ];
    let feed_forward: Tensors = &[
        ("model.layers.{}.mlp.c_fc.weight", &[16, 8]),
        ("model.layers.{}.mlp.c_fc.bias", &[16]),
        ("model.layers.{}.mlp.c_proj.weight", &[8, 16]),
        ("model.layers.{}.mlp.c_proj.bias", &[8]),
    ];
    let layer =
        [width8::NORMS, width8::NORM_BIASES, width8::ATTENTION, width8::QKVO_BIASES, feed_forward]
            .concat();
    two_layer_model("Starcoder2ForCausalLM", config, ends, &layer)
}

#[test]
pub fn starcoder2_round_trip() {
    assert_round_trip(&starcoder2());
}

#[test]
fn starcoder_kv_heads_follow_multi_query() {
    for (multi_query, kv_heads, qkv) in [(true, 1, 16), (false, 2, 24)] {
        let tiny = starcoder(multi_query, qkv);
        let gguf = tiny.convert().unwrap();
        assert_valid(&gguf);
        assert_eq!(metadata_value(&gguf, "starcoder.attention.head_count_kv"), kv_heads);
        let stored = tiny.values("transformer.h.0.attn.c_attn.bias");
        let found = elements(&gguf, "blk.0.attn_qkv.bias");
        if multi_query {
            assert_eq!(found, stored);
        } else {
            let order = [
                0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22,
                23,
            ];
            assert_eq!(found, gather_rows(&stored, 1, &order));
        }
        let stored = tiny.values("transformer.h.0.mlp.c_fc.weight");
        assert_eq!(elements(&gguf, "blk.0.ffn_up.weight"), stored);
    }
}

#[test]
fn starcoder2_uses_layer_norm() {
    let tiny = starcoder2();
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "starcoder2.attention.layer_norm_epsilon"), json!(1e-5f32));
    assert_eq!(metadata_value(&gguf, "starcoder2.rope.freq_base"), 999999.0);
    let stored = tiny.values("model.layers.1.self_attn.k_proj.weight");
    assert_eq!(elements(&gguf, "blk.1.attn_k.weight"), stored);
}
