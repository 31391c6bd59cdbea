//! MPT.

use serde_json::{Value, json};

use crate::fixtures::decoder::merged;
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tiny, assert_valid, metadata_value, two_layer_model};

#[test]
pub fn mpt_round_trip() {
    let attention = json!({
        "alibi": false, "clip_qkv": 6.0, "kv_n_heads": 2, "qk_ln": true, "prefix_lm": false,
    });
    let mpt = two_layer_model(
        "MPTForCausalLM",
        json!({
            "d_model": 8, "n_heads": 2, "n_layers": 2, "max_seq_len": 4, "expansion_ratio": 2,
            "attn_config": attention, "no_bias": false,
        }),
        &[
            ("transformer.wte.weight", &[6, 8]),
            ("transformer.wpe.weight", &[4, 8]),
            ("transformer.norm_f.weight", &[8]),
        ],
        &[
            ("transformer.blocks.{}.norm_1.weight", &[8]),
            ("transformer.blocks.{}.attn.Wqkv.weight", &[24, 8]),
            ("transformer.blocks.{}.attn.Wqkv.bias", &[24]),
            ("transformer.blocks.{}.attn.q_ln.weight", &[8]),
            ("transformer.blocks.{}.attn.k_ln.weight", &[8]),
            ("transformer.blocks.{}.attn.out_proj.weight", &[8, 8]),
            ("transformer.blocks.{}.norm_2.weight", &[8]),
            ("transformer.blocks.{}.ffn.up_proj.weight", &[16, 8]),
            ("transformer.blocks.{}.ffn.down_proj.weight", &[8, 16]),
        ],
    );
    assert_round_trip(&mpt);
}

/// Builds MPT with one layer.
fn mpt(class: &str, fields: Value) -> Tiny {
    let config = merged(
        json!({"architectures": [class], "d_model": 8, "n_heads": 2, "n_layers": 1,
        "max_seq_len": 4, "vocab_size": 6}),
        fields,
    );
    Tiny::new(config).byte_level(6).tensors(&[
        ("transformer.wte.weight", &[6, 8]),
        ("transformer.norm_f.weight", &[8]),
        ("transformer.blocks.0.norm_1.weight", &[8]),
        ("transformer.blocks.0.attn.Wqkv.weight", &[24, 8]),
        ("transformer.blocks.0.attn.out_proj.weight", &[8, 8]),
        ("transformer.blocks.0.norm_2.weight", &[8]),
        ("transformer.blocks.0.ffn.up_proj.weight", &[32, 8]),
        ("transformer.blocks.0.ffn.down_proj.weight", &[8, 32]),
    ])
}

#[test]
fn mpt_class_of_transformers_always_uses_alibi() {
    let fields = json!({"layer_norm_epsilon": 1e-6, "attn_config": {"clip_qkv": 8.0}});
    let gguf = mpt("MptForCausalLM", fields).convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "mpt.attention.max_alibi_bias"), 8.0);
    assert_eq!(metadata_value(&gguf, "mpt.attention.layer_norm_epsilon"), json!(1e-6f32));
    assert_eq!(metadata_value(&gguf, "mpt.attention.clamp_kqv"), 8.0);
    // The authors' own class uses ALiBi only if the configuration says so.
    let gguf = mpt("MPTForCausalLM", json!({})).convert().unwrap();
    assert_eq!(metadata_value(&gguf, "mpt.attention.max_alibi_bias"), 0.0);
}

#[test]
fn other_softmax_scale_fails() {
    let fields = json!({"attn_config": {"softmax_scale": 0.5}});
    let message = mpt("MptForCausalLM", fields).convert().unwrap_err().to_string();
    assert!(message.contains("softmax_scale"), "{message}");
}
