//! Class names in config.json, and configurations that fail for several models.

use serde_json::json;

use crate::fixtures::decoder::{
    HEAD, LAYERS, NamedShape, VOCAB, WIDTH, config, llama_layer, norms,
};
use crate::fixtures::{Tiny, assert_valid, metadata_value};

#[test]
fn bare_model_classes_have_unprefixed_tensor_names() {
    for class in ["LlamaModel", "MistralModel", "Qwen2Model", "Qwen3Model", "Qwen3ForCausalLM"] {
        let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD});
        let of_heads = vec![
            norms(&[]),
            vec![
                ("layers.{}.self_attn.q_norm.weight".to_owned(), vec![HEAD]),
                ("layers.{}.self_attn.k_norm.weight".to_owned(), vec![HEAD]),
            ],
        ];
        let bare: Vec<NamedShape> = llama_layer()
            .into_iter()
            .flatten()
            .map(|(name, shape)| (name.replacen("model.", "", 1), shape))
            .collect();
        let mut layer = vec![bare];
        if class.starts_with("Qwen3") {
            layer.extend(of_heads);
        }
        let mut tiny = Tiny::new(config(class, "", fields)).byte_level(VOCAB);
        tiny = tiny.tensors(&[("embed_tokens.weight", &[VOCAB, WIDTH]), ("norm.weight", &[WIDTH])]);
        let layer: Vec<NamedShape> = layer.into_iter().flatten().collect();
        let layer: Vec<_> = layer.iter().map(|(name, shape)| (&**name, &**shape)).collect();
        let tiny = tiny.layers(LAYERS, &layer);
        let modules =
            json!([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]);
        tiny.file("modules.json", modules.to_string());
        std::fs::create_dir(tiny.path().join("1_Pooling")).unwrap();
        tiny.file("1_Pooling/config.json", r#"{"pooling_mode_lasttoken": true}"#);
        let gguf = tiny.convert().unwrap_or_else(|error| panic!("{class}: {error}"));
        assert_valid(&gguf);
        if class.starts_with("Qwen") {
            let architecture = metadata_value(&gguf, "general.architecture");
            let pooling = format!("{}.pooling_type", architecture.as_str().unwrap());
            assert_eq!(metadata_value(&gguf, &pooling), 3, "{class}");
        }
    }
}

#[test]
fn other_head_fails_and_names_the_supported_class() {
    for (class, body) in [
        ("LlamaForSequenceClassification", "LlamaForCausalLM"),
        ("Qwen3ForTokenClassification", "Qwen3ForCausalLM"),
        ("BertForQuestionAnswering", "BertModel"),
        ("GPT2ForSequenceClassification", "GPT2LMHeadModel"),
    ] {
        let tiny = Tiny::new(config(class, "", json!({}))).byte_level(VOCAB);
        let message = tiny.convert().unwrap_err().to_string();
        assert!(message.contains("head") && message.contains(body), "{message}");
    }
}

#[test]
fn unsupported_config_fields_fail_by_name() {
    for (class, field, value) in [
        ("Qwen3ForCausalLM", "attention_bias", json!(true)),
        ("OlmoForCausalLM", "attention_bias", json!(true)),
        ("Olmo2ForCausalLM", "attention_bias", json!(true)),
        ("GemmaForCausalLM", "attention_bias", json!(true)),
        ("CohereForCausalLM", "attention_bias", json!(true)),
        ("SmolLM3ForCausalLM", "attention_bias", json!(true)),
        ("SmolLM3ForCausalLM", "mlp_bias", json!(true)),
        ("SmolLM3ForCausalLM", "no_rope_layer_interval", json!(2)),
        ("SmolLM3ForCausalLM", "no_rope_layers", json!([1, 1, 0, 1])),
        ("GPTNeoXForCausalLM", "attention_bias", json!(false)),
        ("Starcoder2ForCausalLM", "use_bias", json!(false)),
        ("MambaForCausalLM", "use_bias", json!(true)),
        ("MambaForCausalLM", "use_conv_bias", json!(false)),
    ] {
        let config = config(class, "", json!({field: value, "rms_norm_eps": 1e-6}));
        let message = Tiny::new(config).byte_level(VOCAB).convert().unwrap_err().to_string();
        assert!(
            message.contains(field) && message.contains("which llama.cpp does not support"),
            "{class}: {message}"
        );
    }
}

/// llama.cpp does not load `rope_freqs.weight` for these architectures, and fails on unknown tensors.
#[test]
fn llama3_rope_scaling_fails_without_rope_freqs() {
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8});
    for class in ["SmolLM3ForCausalLM", "Qwen2ForCausalLM", "GemmaForCausalLM"] {
        let config = config(class, "", json!({"rope_scaling": llama3, "rms_norm_eps": 1e-6}));
        let error = Tiny::new(config).byte_level(VOCAB).convert().unwrap_err();
        assert_eq!(error.code(), "config-unsupported", "{class}: {error}");
        let message = error.to_string();
        assert!(
            message.contains("`rope_type` is llama3, which llama.cpp does not support"),
            "{message}"
        );
    }
}

#[test]
fn checkpoint_without_weights_fails() {
    let config = config("LlamaForCausalLM", "", json!({"rms_norm_eps": 1e-6}));
    let tiny = Tiny::new(config).byte_level(VOCAB);
    // A buffer that runtimes compute does not count as a weight.
    let with_buffer = [("model.layers.0.self_attn.rotary_emb.inv_freq", &[2][..])];
    for error in [tiny.convert().unwrap_err(), tiny.tensors(&with_buffer).convert().unwrap_err()] {
        assert_eq!(error.code(), "checkpoint-weights-missing", "{error}");
        assert_eq!(error.fault(), gguf::Fault::Input);
    }
}
