//! GPT-NeoX.

use serde_json::{Value, json};

use crate::fixtures::decoder::merged;
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tiny, assert_valid, elements, gather_rows, metadata_value, two_layer_model};

/// Builds GPT-NeoX with two layers.
fn gpt_neox(fields: Value) -> Tiny {
    let all = json!({
        "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2,
        "intermediate_size": 16, "layer_norm_eps": 1e-6, "max_position_embeddings": 4,
    });
    two_layer_model(
        "GPTNeoXForCausalLM",
        merged(all, fields),
        &[
            ("gpt_neox.embed_in.weight", &[6, 8]),
            ("gpt_neox.final_layer_norm.weight", &[8]),
            ("gpt_neox.final_layer_norm.bias", &[8]),
            ("embed_out.weight", &[6, 8]),
        ],
        &[
            ("gpt_neox.layers.{}.input_layernorm.weight", &[8]),
            ("gpt_neox.layers.{}.input_layernorm.bias", &[8]),
            ("gpt_neox.layers.{}.attention.query_key_value.weight", &[24, 8]),
            ("gpt_neox.layers.{}.attention.query_key_value.bias", &[24]),
            ("gpt_neox.layers.{}.attention.dense.weight", &[8, 8]),
            ("gpt_neox.layers.{}.attention.dense.bias", &[8]),
            ("gpt_neox.layers.{}.post_attention_layernorm.weight", &[8]),
            ("gpt_neox.layers.{}.post_attention_layernorm.bias", &[8]),
            ("gpt_neox.layers.{}.mlp.dense_h_to_4h.weight", &[16, 8]),
            ("gpt_neox.layers.{}.mlp.dense_h_to_4h.bias", &[16]),
            ("gpt_neox.layers.{}.mlp.dense_4h_to_h.weight", &[8, 16]),
            ("gpt_neox.layers.{}.mlp.dense_4h_to_h.bias", &[8]),
        ],
    )
}

#[test]
pub fn gpt_neox_round_trip() {
    assert_round_trip(&gpt_neox(json!({
        "rotary_emb_base": 50000, "rotary_pct": 0.5, "use_parallel_residual": false,
    })));
}

#[test]
fn gpt_neox_splits_fused_heads() {
    let current = json!({"rope_parameters": {"rope_theta": 50000.0, "partial_rotary_factor": 0.5}});
    let original = json!({"rotary_emb_base": 50000, "rotary_pct": 0.5});
    for fields in [original, current] {
        let inv_freq = ("gpt_neox.layers.0.attention.rotary_emb.inv_freq", &[1][..]);
        let tiny = gpt_neox(fields).tensors(&[inv_freq]);
        let gguf = tiny.convert().unwrap();
        assert_valid(&gguf);
        assert_eq!(metadata_value(&gguf, "gptneox.rope.freq_base"), 50000.0);
        assert_eq!(metadata_value(&gguf, "gptneox.rope.dimension_count"), 2);
        // Two heads of four rows: queries, keys and values of head 0, then of head 1.
        let order =
            [0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22, 23];
        let stored = tiny.values("gpt_neox.layers.0.attention.query_key_value.weight");
        assert_eq!(elements(&gguf, "blk.0.attn_qkv.weight"), gather_rows(&stored, 8, &order));
        let stored = tiny.values("gpt_neox.layers.0.attention.query_key_value.bias");
        assert_eq!(elements(&gguf, "blk.0.attn_qkv.bias"), gather_rows(&stored, 1, &order));
    }
}
