//! DBRX.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, HEADS, KV, LAYERS, NamedShape, VOCAB, WIDTH, checkpoint_with_names,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn dbrx_round_trip() {
    let layer: Vec<NamedShape> = [
        ("norm_attn_norm.norm_1.weight", &[WIDTH][..]),
        ("norm_attn_norm.attn.Wqkv.weight", &[(HEADS + 2 * KV) * HEAD, WIDTH]),
        ("norm_attn_norm.attn.out_proj.weight", &[WIDTH, WIDTH]),
        ("norm_attn_norm.norm_2.weight", &[WIDTH]),
        ("ffn.router.layer.weight", &[EXPERTS, WIDTH]),
        ("ffn.experts.mlp.w1", &[EXPERTS * EXPERT_FF, WIDTH]),
        ("ffn.experts.mlp.w2", &[EXPERTS * EXPERT_FF, WIDTH]),
        ("ffn.experts.mlp.v1", &[EXPERTS * EXPERT_FF, WIDTH]),
    ]
    .map(|(name, shape)| (format!("transformer.blocks.{{}}.{name}"), shape.to_vec()))
    .to_vec();
    let config = json!({"architectures": ["DbrxForCausalLM"], "model_type": "dbrx",
        "d_model": WIDTH, "n_heads": HEADS, "n_layers": LAYERS, "max_seq_len": 256,
        "vocab_size": VOCAB,
        "attn_config": {"clip_qkv": 8, "kv_n_heads": KV, "rope_theta": 500000},
        "ffn_config": {"ffn_hidden_size": EXPERT_FF, "moe_num_experts": EXPERTS, "moe_top_k": 2}});
    let top = [("transformer.wte", &[VOCAB, WIDTH][..]), ("transformer.norm_f", &[WIDTH])];
    let exported = assert_round_trip(&checkpoint_with_names(config.clone(), &top, &layer)).config;
    assert_eq!(exported["attn_config"], config["attn_config"]);
    assert_eq!(exported["ffn_config"], config["ffn_config"]);
}
