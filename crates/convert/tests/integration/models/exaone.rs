//! EXAONE 3 to 4.5 and EXAONE MoE.

use serde_json::{Value, json};

use crate::fixtures::Tiny;
use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, NamedShape, UNTIED, VOCAB, WIDTH, attention,
    checkpoint, checkpoint_with_names, config, gated_ffn, layer_tensor, moe_parts, norms,
    pre_norms, qk_norms, with_mtp_layer, with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn exaone_round_trip() {
    let layer: Vec<NamedShape> = [
        ("ln_1", &[WIDTH][..]),
        ("attn.attention.q_proj", &[HEADS * HEAD, WIDTH]),
        ("attn.attention.k_proj", &[KV * HEAD, WIDTH]),
        ("attn.attention.v_proj", &[KV * HEAD, WIDTH]),
        ("attn.attention.out_proj", &[WIDTH, HEADS * HEAD]),
        ("ln_2", &[WIDTH]),
        ("mlp.c_fc_0", &[FF, WIDTH]),
        ("mlp.c_fc_1", &[FF, WIDTH]),
        ("mlp.c_proj", &[WIDTH, FF]),
    ]
    .map(|(name, shape)| (format!("transformer.h.{{}}.{name}.weight"), shape.to_vec()))
    .to_vec();
    let fields = json!({"layer_norm_epsilon": 1e-5, "rope_theta": 1e6, "head_dim": HEAD});
    let top = [("transformer.wte", &[VOCAB, WIDTH][..]), ("transformer.ln_f", &[WIDTH])];
    assert_round_trip(&checkpoint_with_names(
        config("ExaoneForCausalLM", "exaone", fields),
        &top,
        &layer,
    ));
}

#[test]
pub fn exaone_moe_and_4_5_mtp_layer_round_trip() {
    let mut network = moe_parts().concat();
    network[1] = layer_tensor("mlp.e_score_correction_bias", &[EXPERTS]);
    let layer = vec![pre_norms(), attention(), qk_norms(), network];
    let fields =
        with_rms_norm(json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "num_shared_experts": 1, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 0,
        "routed_scaling_factor": 2.5, "norm_topk_prob": true, "scoring_func": "sigmoid",
        "n_group": 1, "topk_group": 1, "num_nextn_predict_layers": 1, "sliding_window": 32,
        "sliding_window_pattern": "LLLG"}));
    let class = "ExaoneMoEForCausalLM";
    let exported =
        assert_round_trip(&checkpoint_with_mtp_layer(config(class, "exaone_moe", fields), layer))
            .config;
    assert_eq!(exported["num_nextn_predict_layers"], 1);
    let norms = norms(&["post_attention_layernorm", "post_feedforward_layernorm"]);
    let layer = vec![norms, attention(), gated_ffn("mlp", FF), qk_norms()];
    let fields = with_rms_norm(json!({"head_dim": HEAD, "num_nextn_predict_layers": 1}));
    let class = "Exaone4_5_ForConditionalGeneration";
    let exported =
        assert_round_trip(&checkpoint_with_mtp_layer(config(class, "exaone4_5", fields), layer))
            .config;
    assert_eq!(exported["architectures"], json!([class]));
}

/// Builds a checkpoint with an MTP layer behind the others.
fn checkpoint_with_mtp_layer(config: Value, layer: Vec<Vec<NamedShape>>) -> Tiny {
    with_mtp_layer(checkpoint(config, layer.clone(), UNTIED), &layer.concat())
}

#[test]
pub fn exaone4_round_trip() {
    let fields = with_rms_norm(
        json!({"head_dim": HEAD, "sliding_window": 32, "sliding_window_pattern": "LLG"}),
    );
    let norms = norms(&["post_attention_layernorm", "post_feedforward_layernorm"]);
    let layer = vec![norms, attention(), gated_ffn("mlp", FF), qk_norms()];
    let tiny = checkpoint(config("Exaone4ForCausalLM", "exaone4", fields), layer, UNTIED);
    let kinds = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"];
    assert_eq!(assert_round_trip(&tiny).config["layer_types"], json!(kinds));
}
