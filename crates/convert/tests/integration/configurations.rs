//! Fields of configuration classes that GGUF cannot hold, and published configurations, which hold no such field.

use gguf::Metadata;
use gguf_checkpoint::config::Config;
use gguf_models::convert::{self, configuration, rope_check};
use serde_json::{Value, json};

use crate::fixtures::decoder::merged;

/// Fields that all configurations of this file share unless they state others.
fn config(class: &str, fields: Value) -> Config {
    let all = json!({
        "architectures": [class], "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "vocab_size": 8,
        "rms_norm_eps": 1e-6, "layer_norm_eps": 1e-5, "layer_norm_epsilon": 1e-5, "norm_epsilon": 1e-5,
    });
    Config::of(merged(all, fields))
}

/// Returns the notes of a conversion of a configuration, or its error.
fn notes(mut config: Config) -> Result<Vec<String>, gguf::Error> {
    let mut notes = configuration::check(&config)?;
    let converter = convert::find(config.class()?).unwrap();
    converter.complete_config(&mut config)?;
    let converter = converter.of_model(&config);
    let mut metadata = Metadata::new();
    converter.leading_metadata(&config, &mut metadata)?;
    converter.metadata(&config, 0, &mut metadata)?;
    notes.extend(rope_check::check(
        &config,
        converter,
        &metadata,
        &converter.computed_tensors(&config)?,
    )?);
    Ok(notes)
}

/// Fails unless the configuration is refused with the name of the field.
fn refused(class: &str, field: &str, fields: Value) {
    let error = notes(config(class, fields)).expect_err(&format!("{class} with {field}"));
    let message = error.to_string();
    assert_eq!(error.code(), "config-unsupported", "{class}: {message}");
    assert!(message.contains(&format!("`{field}")), "{class}: {message}");
    assert!(message.contains("llama.cpp does not support"), "{class}: {message}");
}

#[test]
fn other_activation_functions_are_refused() {
    for (class, field, value) in [
        ("LlamaForCausalLM", "hidden_act", "gelu"),
        ("MistralForCausalLM", "hidden_act", "relu"),
        ("Qwen2ForCausalLM", "hidden_act", "gelu_new"),
        ("Qwen3ForCausalLM", "hidden_act", "relu2"),
        ("Phi3ForCausalLM", "hidden_act", "gelu"),
        ("Gemma2ForCausalLM", "hidden_activation", "silu"),
        ("GPTNeoXForCausalLM", "hidden_act", "relu"),
        ("Starcoder2ForCausalLM", "hidden_act", "silu"),
        ("BertModel", "hidden_act", "relu"),
        ("GPT2LMHeadModel", "activation_function", "relu"),
        ("FalconForCausalLM", "activation", "relu"),
        ("T5ForConditionalGeneration", "feed_forward_proj", "gated-silu"),
    ] {
        refused(class, field, json!({field: value, "head_dim": 256}));
    }
}

#[test]
fn scalars_without_a_key_are_refused() {
    for (class, field, value) in [
        ("GPT2LMHeadModel", "scale_attn_weights", json!(false)),
        ("GPT2LMHeadModel", "scale_attn_by_inverse_layer_idx", json!(true)),
        ("GPTBigCodeForCausalLM", "scale_attn_weights", json!(false)),
        ("Gemma2ForCausalLM", "query_pre_attn_scalar", json!(100)),
        ("Gemma3ForCausalLM", "query_pre_attn_scalar", json!(100)),
        ("Gemma2ForCausalLM", "attn_logit_softcapping", json!(null)),
        ("Gemma2ForCausalLM", "final_logit_softcapping", json!(null)),
        ("Gemma3ForCausalLM", "use_bidirectional_attention", json!(true)),
        ("GemmaForCausalLM", "tie_word_embeddings", json!(false)),
        ("CohereForCausalLM", "tie_word_embeddings", json!(false)),
        ("BertModel", "is_decoder", json!(true)),
        ("Lfm2MoeForCausalLM", "routed_scaling_factor", json!(2.0)),
        ("GptOssForCausalLM", "swiglu_alpha", json!(1.5)),
        ("MiniCPM3ForCausalLM", "scale_emb", json!(1)),
        ("Dots1ForCausalLM", "layer_types", json!(["full_attention", "sliding_attention"])),
        ("DeepseekV3ForCausalLM", "rope_interleave", json!(false)),
        ("MptForCausalLM", "attn_config.prefix_lm", json!(null)),
    ] {
        let fields = match field.split_once('.') {
            Some((outer, inner)) => json!({outer: {inner: true}}),
            None => json!({field: value, "head_dim": 256}),
        };
        refused(class, field, fields);
    }
    // The default of the class is a value that no loader computes.
    refused("AfmoeForCausalLM", "mup_enabled", json!({}));
}

#[test]
fn rope_parameters_without_a_key_are_refused() {
    let yarn = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64});
    let factors: Vec<f64> = (0..8).map(|i| 1.0 + f64::from(i)).collect();
    let long = json!({"rope_type": "longrope", "original_max_position_embeddings": 64,
        "long_factor": factors, "short_factor": factors});
    for (class, field, rope) in [
        ("LlamaForCausalLM", "truncate", merged(yarn.clone(), json!({"truncate": false}))),
        (
            "Qwen3ForCausalLM",
            "mscale",
            merged(yarn.clone(), json!({"mscale": 0.7, "mscale_all_dim": 1.0})),
        ),
        ("LlamaForCausalLM", "rope_type", long.clone()),
        ("Qwen2ForCausalLM", "rope_type", long),
        ("NemotronForCausalLM", "rope_type", yarn.clone()),
        ("GptOssForCausalLM", "truncate", yarn.clone()),
        (
            "LlamaForCausalLM",
            "partial_rotary_factor",
            merged(yarn.clone(), json!({"partial_rotary_factor": 0.5})),
        ),
        (
            "Olmo3ForCausalLM",
            "rope_parameters.sliding_attention.rope_type",
            json!({"full_attention": {"rope_type": "default"}, "sliding_attention": yarn}),
        ),
    ] {
        for name in ["rope_parameters", "rope_scaling"] {
            refused(
                class,
                field,
                json!({name: rope, "rope_theta": 1e4, "num_local_experts": 4, "sliding_window": 32}),
            );
        }
    }
}

/// llama.cpp multiplies the default attention factor of YaRN by `rope.scaling.attn_factor`, and ignores other keys.
#[test]
fn attention_factors_are_written() {
    let number = |class: &str, rope: Value| {
        let mut config = config(class, json!({"rope_parameters": rope, "rope_theta": 1e4}));
        let converter = convert::find(class).unwrap();
        converter.complete_config(&mut config).unwrap();
        let mut metadata = Metadata::new();
        converter.leading_metadata(&config, &mut metadata).unwrap();
        converter.metadata(&config, 0, &mut metadata).unwrap();
        let found = metadata.get(&format!("{}.rope.scaling.attn_factor", converter.architecture()));
        match found {
            Some(gguf::Value::F32(number)) => *number,
            other => panic!("{class}: {other:?}"),
        }
    };
    let yarn = json!({"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5,
        "original_max_position_embeddings": 64});
    let default = 1.0 + 0.1 * 4f32.ln();
    assert!((number("LlamaForCausalLM", yarn) * default - 1.5).abs() < 1e-6);
    let factors = vec![1.0; 8];
    let long = json!({"rope_type": "longrope", "original_max_position_embeddings": 64,
        "long_factor": factors, "short_factor": factors});
    assert_eq!(
        number("Phi3ForCausalLM", merged(long.clone(), json!({"attention_factor": 1.5}))),
        1.5
    );
    // sqrt(1 + ln 9 / ln 64) with a stated factor of 9.
    let stated = number("Phi3ForCausalLM", merged(long, json!({"factor": 9.0})));
    assert!((stated - (1.0f32 + 9f32.ln() / 64f32.ln()).sqrt()).abs() < 1e-6);
}

#[test]
fn approximations_are_noted() {
    for (class, fields, field) in [
        ("GPTNeoXForCausalLM", json!({"hidden_act": "gelu_fast"}), "hidden_act"),
        ("GemmaForCausalLM", json!({"hidden_act": "gelu"}), "hidden_act"),
        (
            "LlamaForCausalLM",
            json!({"rope_scaling": {"type": "dynamic", "factor": 2.0}}),
            "dynamic",
        ),
    ] {
        let notes = notes(config(class, fields)).unwrap();
        assert!(
            notes.iter().any(|note| note.contains(&format!("`{field}`"))),
            "{class}: {notes:?}"
        );
    }
}

/// Fields of published configurations that decide about a conversion.
#[test]
fn published_configurations_convert_without_notes() {
    let llama3 = json!({"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3"});
    let gemma3 = json!({"model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504,
        "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16, "head_dim": 128,
        "query_pre_attn_scalar": 168, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024});
    let deepseek = |mscale: f64| {
        json!({"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": mscale, "mscale_all_dim": mscale,
            "original_max_position_embeddings": 4096, "type": "yarn"})
    };
    let mla = json!({"hidden_act": "silu", "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
        "num_key_value_heads": 4, "num_experts_per_tok": 6, "attention_bias": false});
    let published = [
        (
            "LlamaForCausalLM",
            json!({"hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "pretraining_tp": 1,
            "rope_scaling": llama3, "rope_theta": 500000.0, "tie_word_embeddings": false, "model_type": "llama"}),
        ),
        (
            "MistralForCausalLM",
            json!({"hidden_act": "silu", "sliding_window": null, "rope_theta": 1e6}),
        ),
        (
            "MixtralForCausalLM",
            json!({"hidden_act": "silu", "num_local_experts": 8, "num_experts_per_tok": 2,
            "output_router_logits": false, "router_aux_loss_coef": 0.02, "sliding_window": null}),
        ),
        (
            "Qwen2ForCausalLM",
            json!({"hidden_act": "silu", "max_window_layers": 28, "use_sliding_window": false,
            "sliding_window": 131072, "use_mrope": false, "rope_theta": 1e6}),
        ),
        (
            "Qwen3ForCausalLM",
            json!({"hidden_act": "silu", "attention_bias": false, "head_dim": 128,
            "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}),
        ),
        (
            "Qwen3MoeForCausalLM",
            json!({"hidden_act": "silu", "decoder_sparse_step": 1, "mlp_only_layers": [],
            "norm_topk_prob": true, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}),
        ),
        (
            "GemmaForCausalLM",
            json!({"hidden_act": "gelu_pytorch_tanh", "hidden_activation": null, "head_dim": 256}),
        ),
        (
            "Gemma2ForCausalLM",
            json!({"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": 144, "head_dim": 128, "hidden_size": 4608, "num_attention_heads": 32,
            "num_hidden_layers": 46, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
            "sliding_window": 4096}),
        ),
        ("Gemma3ForConditionalGeneration", json!({"model_type": "gemma3", "text_config": gemma3})),
        (
            "PhiForCausalLM",
            json!({"hidden_act": "gelu_new", "partial_rotary_factor": 0.4, "qk_layernorm": false}),
        ),
        (
            "Phi3ForCausalLM",
            json!({"hidden_act": "silu", "sliding_window": null, "attention_bias": false,
            "partial_rotary_factor": 0.75, "original_max_position_embeddings": 4096, "max_position_embeddings": 131072,
            "rope_scaling": {"type": "longrope", "long_factor": vec![1.0; 6], "short_factor": vec![1.0; 6]}}),
        ),
        (
            "GptOssForCausalLM",
            json!({"hidden_act": "silu", "attention_bias": true, "swiglu_limit": 7.0, "head_dim": 64,
            "num_local_experts": 32, "experts_per_token": 4, "sliding_window": 128, "rope_theta": 150000,
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false}}),
        ),
        (
            "DeepseekV2ForCausalLM",
            merged(
                mla.clone(),
                json!({"topk_method": "greedy", "scoring_func": "softmax",
            "rope_scaling": deepseek(0.707), "norm_topk_prob": false, "q_lora_rank": null}),
            ),
        ),
        (
            "DeepseekV3ForCausalLM",
            merged(
                mla,
                json!({"topk_method": "noaux_tc", "scoring_func": "sigmoid",
            "rope_scaling": deepseek(1.0), "norm_topk_prob": true, "q_lora_rank": 1536, "ep_size": 1}),
            ),
        ),
        (
            "Glm4ForCausalLM",
            json!({"hidden_act": "silu", "partial_rotary_factor": 0.5, "attention_bias": false}),
        ),
        (
            "Glm4MoeForCausalLM",
            json!({"hidden_act": "silu", "partial_rotary_factor": 0.5, "attention_bias": true,
            "n_routed_experts": 128, "n_shared_experts": 1, "moe_intermediate_size": 1408, "use_qk_norm": false,
            "num_experts_per_tok": 8, "routed_scaling_factor": 1.0, "norm_topk_prob": true, "n_group": 1, "topk_group": 1,
            "first_k_dense_replace": 1, "num_nextn_predict_layers": 1}),
        ),
        (
            "Olmo2ForCausalLM",
            json!({"hidden_act": "silu", "attention_bias": false, "rope_theta": 500000}),
        ),
        (
            "Olmo3ForCausalLM",
            json!({"hidden_act": "silu", "sliding_window": 32, "rope_scaling": {
            "rope_type": "yarn", "factor": 8.0, "attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0,
            "original_max_position_embeddings": 8192},
            "layer_types": ["sliding_attention", "full_attention"]}),
        ),
        (
            "GraniteForCausalLM",
            json!({"hidden_act": "silu", "attention_multiplier": 0.0078125, "embedding_multiplier": 12.0,
            "logits_scaling": 16.0, "residual_multiplier": 0.22, "rope_theta": 1e7, "mlp_bias": false}),
        ),
        (
            "GraniteMoeHybridForCausalLM",
            json!({"hidden_act": "silu", "position_embedding_type": "nope",
            "layer_types": ["mamba", "attention"], "mamba_conv_bias": true, "mamba_proj_bias": false,
            "mamba_d_head": 16, "mamba_n_heads": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
            "shared_intermediate_size": 32, "attention_multiplier": 0.1, "embedding_multiplier": 12, "logits_scaling": 6,
            "residual_multiplier": 0.22}),
        ),
        (
            "FalconForCausalLM",
            json!({"alibi": false, "bias": false, "multi_query": true, "parallel_attn": true,
            "new_decoder_architecture": false, "apply_residual_connection_post_layernorm": false, "num_kv_heads": 71}),
        ),
        (
            "Starcoder2ForCausalLM",
            json!({"hidden_act": "gelu_pytorch_tanh", "use_bias": true, "mlp_type": "default",
            "norm_type": "layer_norm", "sliding_window": null}),
        ),
        (
            "Cohere2ForCausalLM",
            json!({"hidden_act": "silu", "attention_bias": false, "logit_scale": 0.25, "head_dim": 16,
            "sliding_window": 64, "sliding_window_pattern": 4, "rope_scaling": null, "use_gated_activation": true,
            "position_embedding_type": "rope_gptj", "order_of_interleaved_layers": "local_attn_first"}),
        ),
        (
            "BertModel",
            json!({"hidden_act": "gelu", "position_embedding_type": "absolute", "type_vocab_size": 2}),
        ),
        (
            "XLMRobertaModel",
            json!({"hidden_act": "gelu", "position_embedding_type": "absolute", "type_vocab_size": 1}),
        ),
        (
            "GPT2LMHeadModel",
            json!({"activation_function": "gelu_new", "n_ctx": 1024, "n_embd": 64, "n_head": 4, "n_layer": 2,
            "n_positions": 1024, "summary_type": "cls_index"}),
        ),
        (
            "GPTNeoXForCausalLM",
            json!({"hidden_act": "gelu", "rotary_pct": 0.25, "rotary_emb_base": 10000,
            "use_parallel_residual": true}),
        ),
        (
            "SmolLM3ForCausalLM",
            json!({"hidden_act": "silu", "no_rope_layer_interval": 4, "num_hidden_layers": 4,
            "no_rope_layers": [1, 1, 1, 0], "layer_types": vec!["full_attention"; 4], "use_sliding_window": false,
            "attention_bias": false, "mlp_bias": false}),
        ),
        (
            "Llama4ForCausalLM",
            json!({"hidden_act": "silu", "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0],
            "attn_temperature_tuning": true, "floor_scale": 8192, "attn_scale": 0.1, "attention_chunk_size": 8192,
            "num_local_experts": 128, "use_qk_norm": false, "interleave_moe_layer_step": 2, "attention_bias": false}),
        ),
        (
            "Qwen2VLForConditionalGeneration",
            json!({"hidden_act": "silu", "use_sliding_window": false,
            "sliding_window": 32768, "max_window_layers": 28, "model_type": "qwen2_vl",
            "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}),
        ),
        (
            "MptForCausalLM",
            json!({"d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 2048, "expansion_ratio": 4,
            "attn_config": {"alibi": true, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0, "clip_qkv": null,
                "attn_type": "multihead_attention", "attn_uses_sequence_id": false, "prefix_lm": false, "qk_ln": false,
                "softmax_scale": null}, "no_bias": true, "norm_type": "low_precision_layernorm"}),
        ),
        (
            "Mamba2ForCausalLM",
            json!({"hidden_act": "silu", "use_bias": false, "use_conv_bias": true, "expand": 2,
            "num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 2, "conv_kernel": 4,
            "time_step_limit": [0.0, null]}),
        ),
    ];
    for (class, fields) in published {
        let base = fields.get("text_config").cloned().unwrap_or_else(|| json!({}));
        let config = match base.as_object().is_some_and(|text| !text.is_empty()) {
            true => config(class, fields.clone()).text(),
            false => config(class, fields),
        };
        assert_eq!(
            notes(config).map_err(|error| format!("{class}: {error}")),
            Ok(vec![]),
            "{class}"
        );
    }
}
