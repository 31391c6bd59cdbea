//! There and back, of decoders whose tensors are fused.

use serde_json::{Value, json};

use crate::Tensors;
use crate::there_and_back::{exported_as_it_was, exported_but_for};
use crate::tiny::{Tiny, assert_sound};

/// A configuration with the usual fields and these.
pub fn config(class: &str, fields: Value) -> Value {
    let mut config = json!({
        "architectures": [class], "hidden_size": 16, "intermediate_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 256, "vocab_size": 6, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
    });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    config
}

const ENDS: Tensors = &[
    ("model.embed_tokens.weight", &[6, 16]),
    ("model.norm.weight", &[16]),
    ("lm_head.weight", &[6, 16]),
];
const NORMS: Tensors = &[
    ("model.layers.{}.input_layernorm.weight", &[16]),
    ("model.layers.{}.post_attention_layernorm.weight", &[16]),
];
const ATTENTION: Tensors = &[
    ("model.layers.{}.self_attn.q_proj.weight", &[16, 16]),
    ("model.layers.{}.self_attn.k_proj.weight", &[8, 16]),
    ("model.layers.{}.self_attn.v_proj.weight", &[8, 16]),
    ("model.layers.{}.self_attn.o_proj.weight", &[16, 16]),
];
const GATED: Tensors = &[
    ("model.layers.{}.mlp.gate_proj.weight", &[24, 16]),
    ("model.layers.{}.mlp.up_proj.weight", &[24, 16]),
    ("model.layers.{}.mlp.down_proj.weight", &[16, 24]),
];

/// Adds a `tokenizer.model` of six pieces.
pub fn sentence_pieces(tiny: Tiny) -> Tiny {
    let number = |field: u8, value: u8| vec![field << 3, value];
    let bytes = |field: u8, value: &[u8]| [&[field << 3 | 2, value.len() as u8], value].concat();
    let piece = |text: &str, score: f32, kind: u8| {
        let score = [&[2 << 3 | 5][..], &score.to_le_bytes()].concat();
        bytes(1, &[bytes(1, text.as_bytes()), score, number(3, kind)].concat())
    };
    let model = [
        piece("<unk>", 0.0, 2),
        piece("<s>", 0.0, 3),
        piece("</s>", 0.0, 3),
        piece("\u{2581}a", -1.5, 1),
        piece("b", -2.0, 1),
        piece("c", -3.0, 1),
        bytes(2, &number(3, 2)),
        bytes(3, &[number(3, 1), number(4, 0)].concat()),
    ];
    tiny.file("tokenizer.model", model.concat());
    tiny
}

#[test]
fn baichuan() {
    let tiny = Tiny::new(config("BaichuanForCausalLM", json!({})))
        .tensors(ENDS)
        .layers(2, NORMS)
        .layers(2, GATED)
        .layers(
            2,
            &[
                ("model.layers.{}.self_attn.W_pack.weight", &[48, 16]),
                ("model.layers.{}.self_attn.o_proj.weight", &[16, 16]),
            ],
        );
    let config = exported_but_for(&sentence_pieces(tiny), |_| false).config;
    assert_eq!(config["model_max_length"], 256);
}

#[test]
fn internlm2() {
    let tiny = Tiny::new(config("InternLM2ForCausalLM", json!({})))
        .tensors(&[
            ("model.tok_embeddings.weight", &[6, 16]),
            ("model.norm.weight", &[16]),
            ("output.weight", &[6, 16]),
        ])
        .layers(
            2,
            &[
                ("model.layers.{}.attention_norm.weight", &[16]),
                ("model.layers.{}.attention.wqkv.weight", &[32, 16]),
                ("model.layers.{}.attention.wo.weight", &[16, 16]),
                ("model.layers.{}.ffn_norm.weight", &[16]),
                ("model.layers.{}.feed_forward.w1.weight", &[24, 16]),
                ("model.layers.{}.feed_forward.w2.weight", &[16, 24]),
                ("model.layers.{}.feed_forward.w3.weight", &[24, 16]),
            ],
        );
    exported_but_for(&sentence_pieces(tiny), |_| false);
}

/// A tokenizer of six tokens with the two that the family's conversion asks for.
fn with_turns(tiny: Tiny) -> Tiny {
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
fn chatglm() {
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
    let config = exported_but_for(&with_turns(tiny), |name| name.contains("inv_freq")).config;
    assert_eq!(config["rope_ratio"], 50);
    assert_eq!(config["add_qkv_bias"], true);
}

#[test]
fn glm() {
    let fields = json!({"head_dim": 4, "partial_rotary_factor": 0.5, "rope_theta": 500000.0});
    let tiny = Tiny::new(config("GlmForCausalLM", fields))
        .tensors(ENDS)
        .layers(2, NORMS)
        .layers(2, ATTENTION)
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
    let config = exported_as_it_was(&with_turns(tiny)).config;
    assert_eq!(config["partial_rotary_factor"], 0.5);
    assert_eq!(config["attention_bias"], true);
}

fn llama4(fields: Value) -> Tiny {
    let mut all = json!({
        "head_dim": 4, "intermediate_size": 12, "intermediate_size_mlp": 24,
        "num_local_experts": 3, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
    });
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Tiny::new(config("Llama4ForCausalLM", all))
        .byte_level(6)
        .tensors(ENDS)
        .layers(2, NORMS)
        .layers(2, ATTENTION)
        .tensors(&[
            ("model.layers.0.feed_forward.gate_proj.weight", &[24, 16]),
            ("model.layers.0.feed_forward.up_proj.weight", &[24, 16]),
            ("model.layers.0.feed_forward.down_proj.weight", &[16, 24]),
            ("model.layers.1.feed_forward.router.weight", &[3, 16]),
            ("model.layers.1.feed_forward.shared_expert.gate_proj.weight", &[12, 16]),
            ("model.layers.1.feed_forward.shared_expert.up_proj.weight", &[12, 16]),
            ("model.layers.1.feed_forward.shared_expert.down_proj.weight", &[16, 12]),
            ("model.layers.1.feed_forward.experts.gate_up_proj", &[3, 16, 24]),
            ("model.layers.1.feed_forward.experts.down_proj", &[3, 12, 16]),
        ])
}

#[test]
fn llama4_has_experts_inputs_first() {
    let config = exported_as_it_was(&llama4(json!({}))).config;
    assert_eq!(
        (&config["intermediate_size"], &config["intermediate_size_mlp"]),
        (&json!(12), &json!(24))
    );
    exported_as_it_was(&llama4(json!({"layer_types": ["full_attention", "full_attention"]})));
}

#[test]
fn wavelengths_are_scaled_as_they_were() {
    // As in the models that are published, and as in others.
    for (high, original) in [(1.0, 8192), (4.0, 8192), (4.0, 64)] {
        let scaling = json!({"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0,
            "high_freq_factor": high, "original_max_position_embeddings": original});
        let fields = json!({"head_dim": 64, "rope_theta": 500000.0, "rope_scaling": scaling});
        let tiny = Tiny::new(config("LlamaForCausalLM", fields))
            .byte_level(6)
            .tensors(ENDS)
            .layers(2, NORMS)
            .layers(2, GATED)
            .layers(
                2,
                &[
                    ("model.layers.{}.self_attn.q_proj.weight", &[256, 16]),
                    ("model.layers.{}.self_attn.k_proj.weight", &[128, 16]),
                    ("model.layers.{}.self_attn.v_proj.weight", &[128, 16]),
                    ("model.layers.{}.self_attn.o_proj.weight", &[16, 256]),
                ],
            );
        let config = exported_as_it_was(&tiny).config;
        assert_eq!(config["rope_scaling"]["original_max_position_embeddings"], original);
    }
}

#[test]
fn gpt_oss_has_gates_and_what_they_gate_in_turn() {
    let scaling = json!({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "truncate": false, "original_max_position_embeddings": 64});
    let fields = json!({
        "head_dim": 4, "sliding_window": 32, "num_local_experts": 3, "num_experts_per_tok": 2,
        "rope_theta": 150000.0, "rope_scaling": scaling,
    });
    let tiny = Tiny::new(config("GptOssForCausalLM", fields))
        .byte_level(6)
        .tensors(ENDS)
        .layers(2, NORMS)
        .layers(2, ATTENTION)
        .layers(
            2,
            &[
                ("model.layers.{}.self_attn.q_proj.bias", &[16]),
                ("model.layers.{}.self_attn.k_proj.bias", &[8]),
                ("model.layers.{}.self_attn.v_proj.bias", &[8]),
                ("model.layers.{}.self_attn.o_proj.bias", &[16]),
                ("model.layers.{}.self_attn.sinks", &[4]),
                ("model.layers.{}.mlp.router.weight", &[3, 16]),
                ("model.layers.{}.mlp.router.bias", &[3]),
                ("model.layers.{}.mlp.experts.gate_up_proj", &[3, 16, 48]),
                ("model.layers.{}.mlp.experts.gate_up_proj_bias", &[3, 48]),
                ("model.layers.{}.mlp.experts.down_proj", &[3, 24, 16]),
                ("model.layers.{}.mlp.experts.down_proj_bias", &[3, 16]),
            ],
        );
    assert_sound(&tiny.convert().unwrap());
    let config = exported_as_it_was(&tiny).config;
    assert_eq!(config["rope_scaling"]["truncate"], false);
}

/// Heads of 3 dimensions that do not rotate and 2 that do; values of 5.
fn deepseek(class: &str, fields: Value) -> Tiny {
    let scaling = json!({"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1,
        "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 64});
    let mut all = json!({
        "kv_lora_rank": 8, "qk_nope_head_dim": 3, "qk_rope_head_dim": 2, "v_head_dim": 5,
        "num_key_value_heads": 4, "n_routed_experts": 3, "n_shared_experts": 2,
        "num_experts_per_tok": 2, "moe_intermediate_size": 12, "first_k_dense_replace": 1,
        "rope_scaling": scaling,
    });
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let mut tiny = Tiny::new(config(class, all))
        .byte_level(6)
        .tensors(ENDS)
        .layers(2, NORMS)
        .layers(1, GATED)
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
fn deepseek2_compresses_keys_and_values() {
    let fields = json!({"q_lora_rank": null, "scoring_func": "softmax", "norm_topk_prob": false,
        "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1});
    let tiny = deepseek("DeepseekV2ForCausalLM", fields)
        .layers(2, &[("model.layers.{}.self_attn.q_proj.weight", &[20, 16])]);
    let config = exported_as_it_was(&tiny).config;
    assert_eq!(config["architectures"][0], "DeepseekV2ForCausalLM");
    assert_eq!(config["q_lora_rank"], Value::Null);
    assert_eq!(config["rope_scaling"]["mscale_all_dim"], 0.707);
    assert_eq!(config["topk_method"], "greedy");
}

#[test]
fn deepseek3_compresses_queries_too() {
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
    let config = exported_but_for(&tiny, |name| name.contains(".2.")).config;
    assert_eq!(config["architectures"][0], "DeepseekV3ForCausalLM");
    assert_eq!((&config["n_group"], &config["topk_group"]), (&json!(3), &json!(1)));
}
