//! DeepSeek V1 to V3.2, DeepSeek-OCR, and GLM models of the same architecture.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, LAYERS, MLA_FIELDS, UNTIED, attention, checkpoint, config,
    gqa_moe_fields, indexer, merged, mla, moe_fields, moe_parts, pre_norms, with_mtp_tensors,
    with_rms_norm,
};
use crate::fixtures::round_trip::{assert_round_trip, assert_round_trip_except};
use crate::fixtures::{Tiny, width16};

#[test]
pub fn deepseek_round_trip() {
    let mut fields = gqa_moe_fields(json!({"norm_topk_prob": false, "scoring_func": "softmax"}));
    for field in ["n_group", "topk_group", "routed_scaling_factor"] {
        fields.as_object_mut().unwrap().remove(field);
    }
    let mut layer = [vec![pre_norms(), attention()], moe_parts()].concat();
    layer[2].pop();
    let config = config("DeepseekForCausalLM", "deepseek", fields);
    assert_round_trip(&checkpoint(config, layer, UNTIED));
}

/// Builds DeepSeek V2 or V3 without query projections: heads of 3 dimensions without and 2 with RoPE, values of 5.
fn deepseek(class: &str, fields: Value) -> Tiny {
    let scaling = json!({"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1,
        "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 64});
    let all = merged(
        json!({
            "kv_lora_rank": 8, "qk_nope_head_dim": 3, "qk_rope_head_dim": 2, "v_head_dim": 5,
            "num_key_value_heads": 4, "n_routed_experts": 3, "n_shared_experts": 2,
            "num_experts_per_tok": 2, "moe_intermediate_size": 12, "first_k_dense_replace": 1,
            "rope_scaling": scaling,
        }),
        fields,
    );
    let mut tiny = Tiny::new(width16::config(class, all))
        .byte_level(6)
        .tensors(width16::ENDS)
        .layers(2, width16::NORMS)
        .layers(1, width16::GATED_FFN)
        .layers(
            2,
            &[
                ("model.layers.{}.self_attn.kv_a_proj_with_mqa.weight", &[10, 16]),
                ("model.layers.{}.self_attn.kv_a_layernorm.weight", &[8]),
                ("model.layers.{}.self_attn.kv_b_proj.weight", &[32, 8]),
                ("model.layers.{}.self_attn.o_proj.weight", &[16, 20]),
            ],
        )
        .tensors(&[
            ("model.layers.1.mlp.gate.weight", &[3, 16]),
            ("model.layers.1.mlp.shared_experts.gate_proj.weight", &[24, 16]),
            ("model.layers.1.mlp.shared_experts.up_proj.weight", &[24, 16]),
            ("model.layers.1.mlp.shared_experts.down_proj.weight", &[16, 24]),
        ]);
    for expert in 0..3 {
        let name = |part: &str| format!("model.layers.1.mlp.experts.{expert}.{part}_proj.weight");
        tiny = tiny.tensors(&[
            (&name("gate"), &[12, 16]),
            (&name("up"), &[12, 16]),
            (&name("down"), &[16, 12]),
        ]);
    }
    tiny
}

#[test]
pub fn deepseek_v2_round_trip() {
    let fields = json!({"q_lora_rank": null, "scoring_func": "softmax", "norm_topk_prob": false,
        "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1});
    let tiny = deepseek("DeepseekV2ForCausalLM", fields)
        .layers(2, &[("model.layers.{}.self_attn.q_proj.weight", &[20, 16])]);
    let config = assert_round_trip(&tiny).config;
    assert_eq!(config["architectures"][0], "DeepseekV2ForCausalLM");
    assert_eq!(config["q_lora_rank"], Value::Null);
    assert_eq!(config["rope_scaling"]["mscale_all_dim"], 0.707);
    assert_eq!(config["topk_method"], "greedy");
}

#[test]
fn deepseek_v3_round_trip() {
    let fields = json!({"q_lora_rank": 6, "scoring_func": "sigmoid", "norm_topk_prob": true,
        "routed_scaling_factor": 2.5, "n_group": 3, "topk_group": 1,
        "num_nextn_predict_layers": 1});
    let tiny = deepseek("DeepseekV3ForCausalLM", fields)
        .layers(
            2,
            &[
                ("model.layers.{}.self_attn.q_a_proj.weight", &[6, 16]),
                ("model.layers.{}.self_attn.q_a_layernorm.weight", &[6]),
                ("model.layers.{}.self_attn.q_b_proj.weight", &[20, 6]),
            ],
        )
        .tensors(&[
            ("model.layers.1.mlp.gate.e_score_correction_bias", &[3]),
            ("model.layers.2.enorm.weight", &[16]),
        ]);
    let config = assert_round_trip_except(&tiny, |name| name.contains(".2.")).config;
    assert_eq!(config["architectures"][0], "DeepseekV3ForCausalLM");
    assert_eq!((&config["n_group"], &config["topk_group"]), (&json!(3), &json!(1)));
}

#[test]
pub fn mla_models_with_mtp_layer_round_trip() {
    let mut fields = moe_fields(json!({"scoring_func": "sigmoid"}));
    for (field, value) in MLA_FIELDS {
        fields[field] = json!(value);
    }
    let layer = vec![pre_norms(), mla(), moe_parts().concat()];
    let config_of = |class, kind, fields: &Value| config(class, kind, fields.clone());
    let lite = config_of("Glm4MoeLiteForCausalLM", "glm4_moe_lite", &fields);
    let exported =
        assert_round_trip(&with_mtp_tensors(checkpoint(lite, layer.clone(), UNTIED))).config;
    assert_eq!(exported["num_hidden_layers"], LAYERS - 1);
    assert_eq!(exported["architectures"], json!(["Glm4MoeLiteForCausalLM"]));
    for (field, value) in [("index_n_heads", 2), ("index_head_dim", HEAD), ("index_topk", 8)] {
        fields[field] = json!(value);
    }
    let layer = [layer, vec![indexer()]].concat();
    let third = config_of("DeepseekV32ForCausalLM", "deepseek_v32", &fields);
    let exported =
        assert_round_trip(&with_mtp_tensors(checkpoint(third, layer.clone(), UNTIED))).config;
    assert_eq!(exported["index_topk"], 8);
    fields["indexer_types"] = json!(["full", "shared", "full"]);
    let fifth = config_of("GlmMoeDsaForCausalLM", "glm_moe_dsa", &fields);
    let exported = assert_round_trip(&with_mtp_tensors(checkpoint(fifth, layer, UNTIED))).config;
    assert_eq!(exported["indexer_types"], json!(["full", "shared", "full"]));
}

#[test]
pub fn deepseek_ocr_round_trip() {
    let fields =
        with_rms_norm(json!({"head_dim": HEAD, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
        "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 0,
        "qk_rope_head_dim": 0, "n_group": 1, "topk_group": 1}));
    let mut network = moe_parts().concat();
    network.remove(1);
    let layer = vec![pre_norms(), attention(), network];
    let config = config("DeepseekOCRForCausalLM", "deepseek_vl_v2", fields);
    let tiny =
        checkpoint(config, layer, UNTIED).tensors(&[("model.sam_model.neck.0.weight", &[4, 4])]);
    let exported = assert_round_trip_except(&tiny, |name| name.contains("sam_model")).config;
    assert_eq!(exported["n_routed_experts"], EXPERTS);
}
