//! Required hyper-parameters, and settings that no runtime supports.

use serde_json::{Value, json};

use crate::fixtures::Tiny;

/// Returns configurations with their required fields.
fn required_fields() -> Vec<(Value, &'static [&'static str])> {
    vec![
        (
            json!({"architectures": ["GPT2LMHeadModel"], "n_embd": 8, "n_head": 2, "n_layer": 1,
                "n_positions": 4, "layer_norm_epsilon": 1e-5}),
            &["n_embd", "n_head", "n_layer", "n_positions", "layer_norm_epsilon"],
        ),
        (
            json!({"architectures": ["GPTJForCausalLM"], "n_embd": 8, "n_head": 2, "n_layer": 1,
                "n_positions": 4, "layer_norm_epsilon": 1e-5, "rotary_dim": 2}),
            &["n_embd", "n_head", "n_layer", "n_positions", "layer_norm_epsilon", "rotary_dim"],
        ),
        (
            json!({"architectures": ["GPTNeoXForCausalLM"], "hidden_size": 8,
                "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16,
                "layer_norm_eps": 1e-5, "max_position_embeddings": 4}),
            &[
                "hidden_size",
                "num_attention_heads",
                "num_hidden_layers",
                "intermediate_size",
                "layer_norm_eps",
                "max_position_embeddings",
            ],
        ),
        (
            json!({"architectures": ["MPTForCausalLM"], "d_model": 8, "n_heads": 2, "n_layers": 1,
                "max_seq_len": 4}),
            &["d_model", "n_heads", "n_layers", "max_seq_len"],
        ),
        (
            json!({"architectures": ["BloomForCausalLM"], "hidden_size": 8, "n_head": 2,
                "n_layer": 1, "layer_norm_epsilon": 1e-5}),
            &["hidden_size", "n_head", "n_layer", "layer_norm_epsilon"],
        ),
        (
            json!({"architectures": ["FalconForCausalLM"], "hidden_size": 8,
                "num_attention_heads": 2, "num_hidden_layers": 1, "layer_norm_epsilon": 1e-5}),
            &["hidden_size", "num_attention_heads", "num_hidden_layers", "layer_norm_epsilon"],
        ),
        (
            json!({"architectures": ["GPTBigCodeForCausalLM"], "n_embd": 8, "n_head": 2,
                "n_layer": 1, "n_positions": 4, "layer_norm_epsilon": 1e-5}),
            &["n_embd", "n_head", "n_layer", "n_positions", "layer_norm_epsilon"],
        ),
        (
            json!({"architectures": ["MambaForCausalLM"], "hidden_size": 8,
                "num_hidden_layers": 1}),
            &["hidden_size", "num_hidden_layers"],
        ),
        (
            json!({"architectures": ["Mamba2ForCausalLM"], "hidden_size": 8,
                "num_hidden_layers": 1}),
            &["hidden_size", "num_hidden_layers"],
        ),
        (
            json!({"architectures": ["RwkvForCausalLM"], "hidden_size": 8, "num_hidden_layers": 1,
                "context_length": 4, "layer_norm_epsilon": 1e-5}),
            &["hidden_size", "num_hidden_layers", "context_length", "layer_norm_epsilon"],
        ),
        (
            json!({"architectures": ["WhisperForConditionalGeneration"],
                "max_source_positions": 4, "max_target_positions": 4, "d_model": 8,
                "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "encoder_layers": 1,
                "decoder_layers": 1, "num_mel_bins": 3, "encoder_attention_heads": 2,
                "decoder_attention_heads": 2}),
            &[
                "max_source_positions",
                "max_target_positions",
                "d_model",
                "encoder_ffn_dim",
                "decoder_ffn_dim",
                "encoder_layers",
                "decoder_layers",
                "num_mel_bins",
                "encoder_attention_heads",
                "decoder_attention_heads",
            ],
        ),
        (
            json!({"architectures": ["BertModel"], "hidden_size": 8, "num_attention_heads": 2,
                "num_hidden_layers": 1, "intermediate_size": 16, "layer_norm_eps": 1e-12,
                "max_position_embeddings": 6}),
            &[
                "hidden_size",
                "num_attention_heads",
                "num_hidden_layers",
                "intermediate_size",
                "layer_norm_eps",
                "max_position_embeddings",
            ],
        ),
        (
            json!({"architectures": ["NomicBertModel"], "n_embd": 8, "n_head": 2, "n_layer": 1,
                "n_inner": 16, "n_positions": 8, "rotary_emb_base": 1000, "layer_norm_epsilon": 1e-12}),
            &["n_embd", "n_head", "n_layer", "n_inner", "n_positions", "layer_norm_epsilon"],
        ),
        (
            json!({"architectures": ["T5ForConditionalGeneration"], "d_model": 8, "d_kv": 4,
                "d_ff": 16, "num_heads": 2, "num_layers": 1, "layer_norm_epsilon": 1e-6}),
            &["d_model", "d_kv", "d_ff", "num_heads", "num_layers", "layer_norm_epsilon"],
        ),
    ]
}

/// Synonyms of fields. An error names the first.
const SYNONYMS: [&[&str]; 7] = [
    &["hidden_size", "n_embd"],
    &["num_attention_heads", "n_head", "n_heads"],
    &["num_heads"],
    &["num_hidden_layers", "n_layer", "n_layers", "num_layers"],
    &["max_position_embeddings", "n_positions", "n_ctx"],
    &["layer_norm_epsilon", "layer_norm_eps"],
    &["intermediate_size", "n_inner"],
];

#[test]
fn missing_hyper_parameters_are_named() {
    for (config, fields) in required_fields() {
        for field in fields {
            let mut config = config.clone();
            config.as_object_mut().unwrap().remove(*field);
            let message = Tiny::new(config).byte_level(6).convert().unwrap_err().to_string();
            let names = SYNONYMS.iter().find(|names| names.contains(field));
            let names = names.copied().unwrap_or(std::slice::from_ref(field));
            let named = names.iter().any(|name| message.contains(&format!("`{name}`")));
            assert!(named && message.contains("add the field"), "{field}: {message}");
        }
    }
}

#[test]
fn unexpected_tensors_are_named() {
    for (config, _) in required_fields() {
        let tiny = Tiny::new(config.clone()).tensors(&[("model.layers.0.mystery.weight", &[2])]);
        let message = tiny.byte_level(6).convert().unwrap_err().to_string();
        assert!(message.contains("model.layers.0.mystery.weight"), "{message}");
    }
}

#[test]
fn unsupported_settings_fail() {
    for (class, field, value) in [
        ("FalconForCausalLM", "alibi", true),
        ("FalconForCausalLM", "parallel_attn", false),
        ("BloomForCausalLM", "apply_residual_connection_post_layernorm", true),
        ("GPT2LMHeadModel", "scale_attn_by_inverse_layer_idx", true),
        ("GPTJForCausalLM", "rotary", false),
        ("NomicBertModel", "prenorm", true),
    ] {
        let all = required_fields();
        let (config, _) = all.iter().find(|(c, _)| c["architectures"][0] == class).unwrap();
        let mut config = config.clone();
        config[field] = json!(value);
        let message = Tiny::new(config).byte_level(6).convert().unwrap_err().to_string();
        assert!(
            message.contains(field) && message.contains("which llama.cpp does not support"),
            "{message}"
        );
    }
    let mut config = json!({"architectures": ["MambaForCausalLM"], "hidden_size": 8,
        "num_hidden_layers": 1, "intermediate_size": 24});
    let message = Tiny::new(config.clone()).byte_level(6).convert().unwrap_err().to_string();
    assert!(message.contains("24 is not twice the embedding size 8"), "{message}");
    config["architectures"] = json!(["RwkvForCausalLM"]);
    config["attention_hidden_size"] = json!(16);
    let message = Tiny::new(config).byte_level(6).convert().unwrap_err().to_string();
    assert!(message.contains("attention_hidden_size"), "{message}");
}

#[test]
fn vocabulary_larger_than_the_embedding_fails() {
    let tiny = |tokens: usize, vocab_size: u64| {
        let mut config = json!({"architectures": ["BloomForCausalLM"], "hidden_size": 8,
            "n_head": 2, "n_layer": 1, "layer_norm_epsilon": 1e-5, "vocab_size": vocab_size});
        if vocab_size == 0 {
            config.as_object_mut().unwrap().remove("vocab_size");
        }
        Tiny::new(config).byte_level(tokens).tensors(&[("word_embeddings.weight", &[6, 8])])
    };
    let message = tiny(9, 6).convert().unwrap_err().to_string();
    assert!(message.contains("token id 8 does not fit a vocabulary of 6"), "{message}");
    let message = tiny(9, 0).convert().unwrap_err().to_string();
    assert!(message.contains("config.json") && message.contains("token"), "{message}");
}
