//! ChatGLM, GLM-4, GLM-4 MoE, GLM-4V, GLM-5 Next and Solar Open.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERTS, FF, HEAD, HEADS, LAYERS, LORA_RANK, QK_NOPE, QUERY_WIDTH, UNTIED, V_HEAD, WIDTH,
    alternating_layers, alternating_types, attention, checkpoint, config, delta_attention,
    gqa_moe_fields, indexer, layer_tensor, layer_weight, merged, mla_moe_fields, mla_projections,
    moe_fields, moe_layer, moe_parts, norms, pre_norms, qk_norms, qkv_biases, with_mtp_tensors,
    with_rms_norm,
};
use crate::fixtures::round_trip::{
    assert_config_round_trip, assert_round_trip, assert_round_trip_except,
};
use crate::fixtures::{Tiny, width16};

#[test]
pub fn glm4_moe_round_trip() {
    let fields = gqa_moe_fields(json!({"partial_rotary_factor": 0.5}));
    let layer = [vec![pre_norms(), attention(), qk_norms()], moe_parts()].concat();
    let config = config("Glm4MoeForCausalLM", "glm4_moe", fields);
    let tiny = checkpoint(config, layer, UNTIED);
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["partial_rotary_factor"], 0.5);
    assert_eq!(exported["num_hidden_layers"], LAYERS);
}

#[test]
fn glm4_moe_mtp_layer_round_trip() {
    let fields = gqa_moe_fields(json!({"num_nextn_predict_layers": 1}));
    let layer = [vec![pre_norms(), attention(), qk_norms()], moe_parts()].concat();
    let mut config = config("Glm4MoeForCausalLM", "glm4_moe", fields);
    config["num_hidden_layers"] = json!(LAYERS - 1);
    let tiny = with_mtp_tensors(checkpoint(config, layer, UNTIED));
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["num_nextn_predict_layers"], 1);
    assert_eq!(exported["num_hidden_layers"], LAYERS - 1);
}

/// Adds a tokenizer of six tokens with the two special tokens that the conversion requires.
fn with_chat_tokens(tiny: Tiny) -> Tiny {
    let special = |id: u32, text: &str| json!({"id": id, "content": text, "special": true});
    let tokenizer = json!({
        "added_tokens": [special(4, "<|endoftext|>"), special(5, "<|user|>")],
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
        "decoder": { "type": "ByteLevel" },
        "model": { "type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}, "merges": [] },
    });
    tiny.file("tokenizer.json", tokenizer.to_string());
    tiny
}

#[test]
pub fn chatglm_round_trip() {
    let tiny = Tiny::new(json!({
        "architectures": ["ChatGLMModel"], "hidden_size": 16, "ffn_hidden_size": 24,
        "num_layers": 2, "num_attention_heads": 4, "multi_query_group_num": 2, "seq_length": 256,
        "padded_vocab_size": 6, "layernorm_epsilon": 1.5625e-7, "rope_ratio": 50,
    }))
    .tensors(&[
        ("transformer.embedding.word_embeddings.weight", &[6, 16]),
        ("transformer.encoder.final_layernorm.weight", &[16]),
        ("transformer.output_layer.weight", &[6, 16]),
        ("transformer.rotary_pos_emb.inv_freq", &[2]),
    ])
    .layers(
        2,
        &[
            ("transformer.encoder.layers.{}.input_layernorm.weight", &[16]),
            ("transformer.encoder.layers.{}.self_attention.query_key_value.weight", &[32, 16]),
            ("transformer.encoder.layers.{}.self_attention.query_key_value.bias", &[32]),
            ("transformer.encoder.layers.{}.self_attention.dense.weight", &[16, 16]),
            ("transformer.encoder.layers.{}.post_attention_layernorm.weight", &[16]),
            ("transformer.encoder.layers.{}.mlp.dense_h_to_4h.weight", &[48, 16]),
            ("transformer.encoder.layers.{}.mlp.dense_4h_to_h.weight", &[16, 24]),
        ],
    );
    let config =
        assert_round_trip_except(&with_chat_tokens(tiny), |name| name.contains("inv_freq")).config;
    assert_eq!(config["rope_ratio"], 50);
    assert_eq!(config["add_qkv_bias"], true);
}

#[test]
fn glm_round_trip() {
    let fields = json!({"head_dim": 4, "partial_rotary_factor": 0.5, "rope_theta": 500000.0});
    let tiny = Tiny::new(width16::config("GlmForCausalLM", fields))
        .tensors(width16::ENDS)
        .layers(2, width16::NORMS)
        .layers(2, width16::ATTENTION)
        .layers(
            2,
            &[
                ("model.layers.{}.mlp.gate_up_proj.weight", &[48, 16]),
                ("model.layers.{}.mlp.down_proj.weight", &[16, 24]),
                ("model.layers.{}.self_attn.q_proj.bias", &[16]),
                ("model.layers.{}.self_attn.k_proj.bias", &[8]),
                ("model.layers.{}.self_attn.v_proj.bias", &[8]),
            ],
        );
    let config = assert_round_trip(&with_chat_tokens(tiny)).config;
    assert_eq!(config["partial_rotary_factor"], 0.5);
    assert_eq!(config["attention_bias"], true);
}

#[test]
pub fn solar_open_exports_as_glm4_moe() {
    let layer = vec![pre_norms(), attention(), moe_parts().concat()];
    let fields = moe_fields(json!({"head_dim": HEAD, "partial_rotary_factor": 1.0}));
    let tiny = checkpoint(config("SolarOpenForCausalLM", "solar_open", fields), layer, UNTIED);
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["architectures"], json!(["Glm4MoeForCausalLM"]));
    assert_eq!(exported["partial_rotary_factor"].as_f64(), Some(1.0));
}

#[test]
fn glm4v_and_glm_ocr_round_trip() {
    let layer = vec![
        pre_norms(),
        attention(),
        norms(&["post_self_attn_layernorm", "post_mlp_layernorm"]),
        vec![
            layer_weight("mlp.gate_up_proj", &[2 * FF, WIDTH]),
            layer_weight("mlp.down_proj", &[WIDTH, FF]),
        ],
    ];
    let scaling = json!({"type": "default", "mrope_section": [2, 1, 1]});
    let fields = with_rms_norm(json!({"rope_scaling": scaling, "partial_rotary_factor": 0.5,
        "head_dim": HEAD}));
    let class = "Glm4vForConditionalGeneration";
    let seeing = config(class, "glm4v", fields.clone());
    let exported = assert_round_trip(&checkpoint(seeing, layer.clone(), UNTIED)).config;
    assert_eq!(exported["architectures"], json!([class]));
    let fields =
        merged(fields, json!({"num_nextn_predict_layers": 1, "num_hidden_layers": LAYERS - 1}));
    let class = "GlmOcrForConditionalGeneration";
    let reading = with_mtp_tensors(checkpoint(config(class, "glm_ocr", fields), layer, UNTIED));
    assert_eq!(assert_round_trip(&reading).config["architectures"], json!([class]));
}

#[test]
pub fn glm4_round_trip() {
    let block = || {
        vec![
            pre_norms(),
            norms(&["post_self_attn_layernorm", "post_mlp_layernorm"]),
            attention(),
            vec![
                layer_weight("mlp.gate_up_proj", &[2 * FF, WIDTH]),
                layer_weight("mlp.down_proj", &[WIDTH, FF]),
            ],
        ]
    };
    let plain = json!({"head_dim": HEAD, "attention_bias": false, "partial_rotary_factor": 0.75});
    assert_config_round_trip(config("Glm4ForCausalLM", "glm4", plain), block(), UNTIED);
    let biased = json!({"head_dim": HEAD, "rope_parameters": {"rope_theta": 5e4}});
    assert_config_round_trip(
        config("Glm4ForCausalLM", "glm4", biased),
        [block(), vec![qkv_biases()]].concat(),
        UNTIED,
    );
}

#[test]
pub fn glm5_next_round_trip() {
    const STREAMS: usize = 2;
    const COUNT: usize = (2 + STREAMS) * STREAMS;
    let kinds = alternating_types(["linear_attention", "indexed_attention"]);
    let own = json!({"qk_rope_head_dim": 0, "mla_use_nope": true, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
        "scoring_func": "sigmoid", "swiglu_limit": 10.0, "index_kpool": 4, "index_n_heads": 2, "index_head_dim": HEAD,
        "index_topk": 8, "indexer_types": vec!["full"; LAYERS], "hc_mult": STREAMS, "hc_eps": 1e-6,
        "hc_sinkhorn_iters": 20, "layer_types": kinds, "linear_attn_config": {"num_heads": HEADS, "head_dim": HEAD,
        "short_conv_kernel_size": 4, "gate_lower_bound": -5.0}});
    let mut every = moe_layer("e_score_correction_bias");
    for part in ["attn", "ffn"] {
        every.push(layer_tensor(&format!("hc_{part}_fn"), &[COUNT, STREAMS * WIDTH]));
        every.push(layer_tensor(&format!("hc_{part}_base"), &[COUNT]));
        every.push(layer_tensor(&format!("hc_{part}_scale"), &[3]));
    }
    let mut linear = delta_attention("self_attn");
    for part in ["f", "g"] {
        linear.push(layer_weight(&format!("self_attn.{part}_a_proj"), &[HEAD, WIDTH]));
        linear.push(layer_weight(&format!("self_attn.{part}_b_proj"), &[QUERY_WIDTH, HEAD]));
    }
    let mut full = mla_projections("self_attn", HEADS, LORA_RANK, [QK_NOPE, 0, V_HEAD]);
    full.extend(indexer());
    full.push(layer_weight("self_attn.o_proj", &[WIDTH, HEADS * V_HEAD]));
    full.push(layer_tensor("self_attn.indexer.index_kpool_compress_ape", &[4, HEAD]));
    full.push(layer_tensor("self_attn.indexer.index_kpool_compress_gate", &[HEAD, WIDTH]));
    let config = config("Glm5NextForConditionalGeneration", "glm5_next", mla_moe_fields(own));
    let tiny = alternating_layers(checkpoint(config, vec![every], UNTIED), [&linear, &full]);
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["layer_types"][2], "linear_attention");
    assert_eq!(exported["linear_attn_config"]["gate_lower_bound"], -5.0);
    assert_eq!(exported["hc_sinkhorn_iters"], 20);
}
