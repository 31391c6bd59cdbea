//! LLaDA and LLaDA MoE.

use serde_json::json;

use crate::fixtures::Tiny;
use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, LAYERS, NamedShape, PROJECTIONS, UNTIED, VOCAB, WIDTH,
    attention, borrowed, checkpoint, config, expert_ffns, layer_weight, pre_norms, qk_norms,
};
use crate::fixtures::round_trip::{assert_round_trip, assert_round_trip_with_findings};

#[test]
pub fn llada_moe_round_trip() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 5e4,
        "num_experts": EXPERTS, "num_experts_per_tok": 2, "expert_intermediate_size": EXPERT_FF,
        "mask_token_id": 5});
    let router = vec![layer_weight("mlp.gate", &[EXPERTS, WIDTH])];
    let experts = expert_ffns("mlp", PROJECTIONS);
    let layer = vec![pre_norms(), attention(), qk_norms(), router, experts];
    let config = config("LLaDAMoEModelLM", "llada", fields);
    let tiny = checkpoint(config, layer, UNTIED);
    let exported = assert_round_trip_with_findings(&tiny).config;
    assert_eq!(exported["expert_intermediate_size"], EXPERT_FF);
}

#[test]
pub fn llada_round_trip() {
    let config = json!({"architectures": ["LLaDAModelLM"], "model_type": "llada", "d_model": WIDTH,
        "n_heads": HEADS, "n_kv_heads": HEADS, "n_layers": LAYERS, "mlp_hidden_size": FF,
        "max_sequence_length": 256, "rms_norm_eps": 1e-5, "rope_theta": 5e5, "vocab_size": VOCAB});
    let layer: Vec<NamedShape> = [
        ("attn_norm", &[WIDTH][..]),
        ("ff_norm", &[WIDTH]),
        ("q_proj", &[WIDTH, WIDTH]),
        ("k_proj", &[WIDTH, WIDTH]),
        ("v_proj", &[WIDTH, WIDTH]),
        ("attn_out", &[WIDTH, WIDTH]),
        ("ff_proj", &[FF, WIDTH]),
        ("up_proj", &[FF, WIDTH]),
        ("ff_out", &[WIDTH, FF]),
    ]
    .map(|(name, shape)| (format!("model.transformer.blocks.{{}}.{name}.weight"), shape.to_vec()))
    .to_vec();
    let layer = borrowed(&layer);
    let tiny =
        Tiny::new(config).byte_level(VOCAB).with_bos_and_eos().layers(LAYERS, &layer).tensors(&[
            ("model.transformer.wte.weight", &[VOCAB, WIDTH]),
            ("model.transformer.ln_f.weight", &[WIDTH]),
            ("model.transformer.ff_out.weight", &[VOCAB, WIDTH]),
        ]);
    assert_eq!(assert_round_trip(&tiny).config["mlp_hidden_size"], FF);
}
