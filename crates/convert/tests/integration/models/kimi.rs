//! Kimi Linear, Kimi K3 and the encoder of Kimi K2.5.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, HEADS, LORA_RANK, QK_NOPE, QK_ROPE, QUERY_WIDTH, UNTIED, V_HEAD,
    WIDTH, alternating_layers, checkpoint, config, delta_attention, gated_ffn, layer_tensor,
    layer_weight, mla_moe_fields, mla_projections, pre_norms,
};
use crate::fixtures::mmproj::{convert_mmproj, with_preprocessor_config};
use crate::fixtures::round_trip::{assert_gguf_round_trip, assert_round_trip};
use crate::fixtures::{Tiny, elements};

#[test]
pub fn kimi_linear_round_trip() {
    const RANK: usize = 24;
    const INNER: usize = HEADS * HEAD;
    let mut delta = vec![
        layer_weight("self_attn.o_norm", &[HEAD]),
        layer_weight("self_attn.b_proj", &[HEADS, WIDTH]),
        layer_weight("self_attn.o_proj", &[WIDTH, INNER]),
        layer_tensor("self_attn.A_log", &[1, 1, HEADS, 1]),
        layer_tensor("self_attn.dt_bias", &[INNER]),
    ];
    for part in ["q", "k", "v"] {
        delta.push(layer_weight(&format!("self_attn.{part}_proj"), &[INNER, WIDTH]));
        delta.push(layer_weight(&format!("self_attn.{part}_conv1d"), &[INNER, 1, 4]));
    }
    for part in ["f", "g"] {
        delta.push(layer_weight(&format!("self_attn.{part}_a_proj"), &[HEAD, WIDTH]));
        delta.push(layer_weight(&format!("self_attn.{part}_b_proj"), &[INNER, HEAD]));
    }
    let compressed = vec![
        layer_weight("self_attn.q_proj", &[HEADS * 20, WIDTH]),
        layer_weight("self_attn.kv_a_proj_with_mqa", &[RANK + 8, WIDTH]),
        layer_weight("self_attn.kv_a_layernorm", &[RANK]),
        layer_weight("self_attn.kv_b_proj", &[HEADS * 32, RANK]),
        layer_weight("self_attn.o_proj", &[WIDTH, HEADS * 20]),
    ];
    let mut network = gated_ffn("block_sparse_moe.shared_experts", EXPERT_FF);
    network.push(layer_weight("block_sparse_moe.gate", &[EXPERTS, WIDTH]));
    network.push(layer_tensor("block_sparse_moe.gate.e_score_correction_bias", &[EXPERTS]));
    for e in 0..EXPERTS {
        for (part, shape) in
            [("w1", [EXPERT_FF, WIDTH]), ("w2", [WIDTH, EXPERT_FF]), ("w3", [EXPERT_FF, WIDTH])]
        {
            network.push(layer_weight(&format!("block_sparse_moe.experts.{e}.{part}"), &shape));
        }
    }
    let linear = json!({"full_attn_layers": [2, 4], "kda_layers": [1, 3], "head_dim": HEAD,
        "num_heads": HEADS, "short_conv_kernel_size": 4});
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "kv_lora_rank": RANK,
        "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 20,
        "num_key_value_heads": HEADS, "num_experts": EXPERTS, "num_experts_per_token": 2,
        "num_shared_experts": 1, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 0,
        "routed_scaling_factor": 2.5, "moe_router_activation_func": "sigmoid",
        "linear_attn_config": linear});
    let every = vec![pre_norms(), network];
    let config = config("KimiLinearForCausalLM", "kimi_linear", fields);
    let tiny = alternating_layers(checkpoint(config, every, UNTIED), [&delta, &compressed]);
    assert_eq!(assert_round_trip(&tiny).config["linear_attn_config"], linear);
}

#[test]
pub fn kimi_k3_folds_residual_norm_into_score() {
    const LATENT: usize = 40;
    let own = json!({"mla_use_nope": true, "num_experts": EXPERTS, "num_experts_per_token": 2,
        "num_shared_experts": 1, "moe_renormalize": true, "hidden_act": "situ", "moe_router_activation_func": "sigmoid",
        "routed_expert_hidden_size": LATENT, "attn_res_block_size": 4, "activation_situ_beta": 1.5,
        "activation_situ_linear_beta": 0.5, "linear_attn_config": {"full_attn_layers": [2, 4], "kda_layers": [1, 3],
        "head_dim": HEAD, "num_heads": HEADS, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0}});
    let mut every = pre_norms();
    for part in ["self_attention_res", "mlp_res"] {
        every.push(layer_weight(&format!("{part}_norm"), &[WIDTH]));
        every.push(layer_weight(&format!("{part}_proj"), &[1, WIDTH]));
    }
    every.push(layer_weight("block_sparse_moe.gate", &[EXPERTS, WIDTH]));
    every.push(layer_tensor("block_sparse_moe.gate.e_score_correction_bias", &[EXPERTS]));
    every.extend(gated_ffn("block_sparse_moe.shared_experts", EXPERT_FF));
    every.push(layer_weight("block_sparse_moe.routed_expert_down_proj", &[LATENT, WIDTH]));
    every.push(layer_weight("block_sparse_moe.routed_expert_up_proj", &[WIDTH, LATENT]));
    every.push(layer_weight("block_sparse_moe.routed_expert_norm", &[LATENT]));
    for e in 0..EXPERTS {
        for (part, shape) in
            [("w1", [EXPERT_FF, LATENT]), ("w2", [LATENT, EXPERT_FF]), ("w3", [EXPERT_FF, LATENT])]
        {
            every.push(layer_weight(&format!("block_sparse_moe.experts.{e}.{part}"), &shape));
        }
    }
    let mut linear = delta_attention("self_attn");
    linear.push(layer_weight("self_attn.f_a_proj", &[HEAD, WIDTH]));
    linear.push(layer_weight("self_attn.f_b_proj", &[QUERY_WIDTH, HEAD]));
    linear.push(layer_weight("self_attn.g_proj", &[QUERY_WIDTH, WIDTH]));
    let mut full = mla_projections("self_attn", HEADS, LORA_RANK, [QK_NOPE, QK_ROPE, V_HEAD]);
    full.push(layer_weight("self_attn.o_proj", &[WIDTH, HEADS * V_HEAD]));
    full.push(layer_weight("self_attn.g_proj", &[HEADS * V_HEAD, WIDTH]));
    let config = config("KimiK3ForConditionalGeneration", "kimi_k3", mla_moe_fields(own));
    let tiny = checkpoint(config, vec![every], UNTIED).tensors(&[
        ("model.output_attn_res_norm.weight", &[WIDTH]),
        ("model.output_attn_res_proj.weight", &[1, WIDTH]),
    ]);
    let tiny = alternating_layers(tiny, [&linear, &full]);
    let norm = tiny.values("model.layers.1.mlp_res_norm.weight");
    let row = tiny.values("model.layers.1.mlp_res_proj.weight");
    let product: Vec<f32> = norm.iter().zip(row).map(|(norm, row)| norm * row).collect();
    assert_eq!(elements(&tiny.convert().unwrap(), "blk.1.ffn_res_score.weight"), product);
    // Only the product matters. The export writes it as the norm.
    assert_gguf_round_trip(tiny.path());
}

#[test]
fn kimi_k2_5_encoder_permutes_fused_qkv() {
    let config = json!({"architectures": ["KimiK25ForConditionalGeneration"],
        "text_config": {"hidden_size": 8}, "vision_config": {"vt_hidden_size": 16,
            "vt_intermediate_size": 8, "vt_num_hidden_layers": 1, "vt_num_attention_heads": 2,
            "num_attention_heads": 2, "patch_size": 2}});
    let name = "vision_tower.encoder.blocks.0.wqkv.bias";
    let tiny = with_preprocessor_config(Tiny::new(config)).tensors(&[(name, &[48])]);
    let (bytes, _) = convert_mmproj(&tiny, "f32").unwrap();
    let stored = tiny.values(name);
    // In a head of 8 rows, row and column pairs alternate.
    let head = |start: usize| [0, 1, 4, 5, 2, 3, 6, 7].map(|place| stored[start + place]);
    let sorted: Vec<f32> = [0, 8, 16, 24].into_iter().flat_map(head).collect();
    assert_eq!(elements(&bytes, "v.blk.0.attn_qkv.bias"), [&sorted, &stored[32..]].concat());
}
