//! Ling (Bailing MoE) and Sarvam.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, HEADS, KV, LAYERS, LORA_RANK, NamedShape, QK_NOPE, QK_ROPE,
    QUERY_WIDTH, UNTIED, V_HEAD, VOCAB, WIDTH, alternating_layers, borrowed, checkpoint, config,
    delta_attention, gated_ffn, layer_tensor, layer_weight, merged, mla_moe_fields,
    mla_projections, moe_layer, moe_parts, pre_norms,
};
use crate::fixtures::round_trip::{assert_gguf_round_trip, assert_round_trip};
use crate::fixtures::{Tiny, elements};

#[test]
pub fn bailing_moe_and_v2_round_trip() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 6e5,
        "num_experts": EXPERTS, "num_shared_experts": 1, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 0, "norm_topk_prob": true});
    let fused = (HEADS + 2 * KV) * HEAD;
    let heads = vec![
        layer_weight("attention.query_key_value", &[fused, WIDTH]),
        layer_weight("attention.dense", &[WIDTH, HEADS * HEAD]),
    ];
    let mut network = moe_parts();
    network[0].pop();
    let first = [vec![pre_norms(), heads.clone()], network.clone()].concat();
    assert_bailing_round_trip(
        config("BailingMoeForCausalLM", "bailing_moe", fields.clone()),
        first,
    );
    let mut second = fields;
    second["partial_rotary_factor"] = json!(0.5);
    second["routed_scaling_factor"] = json!(2.5);
    second["score_function"] = json!("sigmoid");
    network[0].push(("model.layers.{}.mlp.gate.expert_bias".into(), vec![EXPERTS]));
    let norms = vec![
        layer_weight("attention.query_layernorm", &[HEAD]),
        layer_weight("attention.key_layernorm", &[HEAD]),
    ];
    let layer = [vec![pre_norms(), heads, norms], network].concat();
    assert_bailing_round_trip(config("BailingMoeV2ForCausalLM", "bailing_moe_v2", second), layer);
}

fn assert_bailing_round_trip(config: Value, layer: Vec<Vec<NamedShape>>) {
    let layer: Vec<NamedShape> = layer.into_iter().flatten().collect();
    let layer = borrowed(&layer);
    let top: &[(&str, &[usize])] = &[
        ("model.word_embeddings.weight", &[VOCAB, WIDTH]),
        ("model.norm.weight", &[WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
    ];
    let tiny = Tiny::new(config).byte_level(VOCAB).tensors(top).layers(LAYERS, &layer);
    assert_round_trip(&tiny);
}

#[test]
pub fn bailing_moe_v3_round_trip() {
    let own = json!({"head_dim": HEAD, "layer_group_size": 2, "short_conv_kernel_size": 4, "no_kda_lora": true,
        "kda_safe_gate": true, "kda_lower_bound": -5.0, "num_experts": EXPERTS, "num_shared_experts": 1,
        "gated_attention_proj_granularity_type": "head_wise", "score_function": "sigmoid",
        "moe_shared_expert_intermediate_size": EXPERT_FF,
        "expert_swiglu_limit_list": [7.0, 7.0, 0.0, 0.0]});
    let mut linear = delta_attention("attention");
    linear.push(layer_weight("attention.f_proj", &[QUERY_WIDTH, WIDTH]));
    linear.push(layer_weight("attention.g_proj", &[QUERY_WIDTH, WIDTH]));
    let mut full = mla_projections("attention", HEADS, LORA_RANK, [QK_NOPE, QK_ROPE, V_HEAD]);
    full.push(layer_weight("attention.o_proj", &[WIDTH, HEADS * V_HEAD]));
    full.push(layer_weight("attention.g_proj", &[HEADS, WIDTH]));
    let made = config("BailingMoeV3ForCausalLM", "bailing_moe_v3", mla_moe_fields(own.clone()));
    let tiny = checkpoint(made, vec![moe_layer("expert_bias")], UNTIED);
    let exported =
        assert_round_trip(&alternating_layers(with_word_embeddings(tiny), [&linear, &full])).config;
    assert_eq!(exported["layer_group_size"], 2);
    assert_eq!(exported["expert_swiglu_limit_list"], json!([7.0, 7.0, 0.0, 0.0]));
    let other = merged(own, json!({"gated_attention_proj_granularity_type": "element_wise"}));
    let other = config("BailingMoeV3ForCausalLM", "bailing_moe_v3", mla_moe_fields(other));
    let tiny = checkpoint(other, vec![moe_layer("expert_bias")], UNTIED);
    let error = alternating_layers(with_word_embeddings(tiny), [&linear, &full])
        .convert()
        .unwrap_err()
        .to_string();
    assert!(error.contains("`gated_attention_proj_granularity_type`"), "{error}");
}

/// Renames the token embedding to Ling's name.
fn with_word_embeddings(tiny: Tiny) -> Tiny {
    tiny.renamed("model.embed_tokens.weight", "model.word_embeddings.weight")
}

#[test]
pub fn sarvam_moe_centers_router_bias() {
    const EXPERTS: usize = 3;
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 6e5, "num_experts": EXPERTS,
        "num_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 0,
        "norm_topk_prob": true, "routed_scaling_factor": 2.5, "score_function": "sigmoid"});
    let mut layer = pre_norms();
    layer.push(layer_weight("attention.query_key_value", &[(HEADS + 2 * KV) * HEAD, WIDTH]));
    layer.push(layer_weight("attention.dense", &[WIDTH, HEADS * HEAD]));
    layer.push(layer_weight("attention.query_layernorm", &[HEAD]));
    layer.push(layer_weight("attention.key_layernorm", &[HEAD]));
    layer.push(layer_weight("mlp.gate", &[EXPERTS, WIDTH]));
    layer.push(layer_tensor("mlp.gate.expert_bias", &[EXPERTS]));
    layer.extend((0..EXPERTS).flat_map(|e| gated_ffn(&format!("mlp.experts.{e}"), 32)));
    layer.extend(gated_ffn("mlp.shared_experts", 32));
    let layer = borrowed(&layer);
    let tiny = Tiny::new(config("SarvamMoEForCausalLM", "sarvam_moe", fields))
        .byte_level(VOCAB)
        .tensors(&[
            ("model.word_embeddings.weight", &[VOCAB, WIDTH]),
            ("model.norm.weight", &[WIDTH]),
            ("lm_head.weight", &[VOCAB, WIDTH]),
        ])
        .layers(LAYERS, &layer);
    let bias = elements(&tiny.convert().unwrap(), "blk.2.exp_probs_b.bias");
    // The bias has three consecutive numbers, the second of which is the mean.
    assert_eq!(bias[1], 0.0);
    assert_eq!(bias[0], -bias[2]);
    assert_gguf_round_trip(tiny.path());
}
