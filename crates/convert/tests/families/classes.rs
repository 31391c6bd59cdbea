//! The class names that `transformers` writes, and the fields that change shapes.

use serde_json::{Value, json};

use crate::decoder::*;
use crate::encoders::{PIECES, T5_DECODER, bert, t5};
use crate::key;
use crate::tiny::{Tiny, assert_sound, elements};

/// A checkpoint of the class that `transformers` has for MPT.
fn mpt(class: &str, fields: Value) -> Tiny {
    let mut config = json!({"architectures": [class], "d_model": 8, "n_heads": 2, "n_layers": 1,
        "max_seq_len": 4, "vocab_size": 6});
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Tiny::new(config).byte_level(6).tensors(&[
        ("transformer.wte.weight", &[6, 8]),
        ("transformer.norm_f.weight", &[8]),
        ("transformer.blocks.0.norm_1.weight", &[8]),
        ("transformer.blocks.0.attn.Wqkv.weight", &[24, 8]),
        ("transformer.blocks.0.attn.out_proj.weight", &[8, 8]),
        ("transformer.blocks.0.norm_2.weight", &[8]),
        ("transformer.blocks.0.ffn.up_proj.weight", &[32, 8]),
        ("transformer.blocks.0.ffn.down_proj.weight", &[8, 32]),
    ])
}

#[test]
fn mpt_of_transformers_always_has_alibi() {
    let fields = json!({"layer_norm_epsilon": 1e-6, "attn_config": {"clip_qkv": 8.0}});
    let gguf = mpt("MptForCausalLM", fields).convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "mpt.attention.max_alibi_bias"), 8.0);
    assert_eq!(key(&gguf, "mpt.attention.layer_norm_epsilon"), json!(1e-6f32));
    assert_eq!(key(&gguf, "mpt.attention.clamp_kqv"), 8.0);
    // The authors' own class has it where the configuration says so.
    let gguf = mpt("MPTForCausalLM", json!({})).convert().unwrap();
    assert_eq!(key(&gguf, "mpt.attention.max_alibi_bias"), 0.0);
}

#[test]
fn mpt_that_scales_scores_otherwise_is_refused() {
    let fields = json!({"attn_config": {"softmax_scale": 0.5}});
    let message = mpt("MptForCausalLM", fields).convert().unwrap_err().to_string();
    assert!(message.contains("softmax_scale"), "{message}");
}

/// Phi, whose feed-forward layer and heads have these widths.
fn phi(fields: Value, heads_kv: usize, inner: usize) -> Tiny {
    let config = config("PhiForCausalLM", "phi", fields);
    let weight = |name: &str, shape: &[usize]| listed(name, shape);
    let with_bias = |name: &str, shape: &[usize]| {
        let (weight, shape) = weight(name, shape);
        [(weight.clone(), shape.clone()), (weight.replace("weight", "bias"), vec![shape[0]])]
    };
    let layer: Vec<Listed> = [
        with_bias("input_layernorm", &[WIDTH]),
        with_bias("self_attn.q_proj", &[HEADS * HEAD, WIDTH]),
        with_bias("self_attn.k_proj", &[heads_kv * HEAD, WIDTH]),
        with_bias("self_attn.v_proj", &[heads_kv * HEAD, WIDTH]),
        with_bias("self_attn.dense", &[WIDTH, HEADS * HEAD]),
        with_bias("mlp.fc1", &[inner, WIDTH]),
        with_bias("mlp.fc2", &[WIDTH, inner]),
    ]
    .concat();
    checkpoint(config, vec![layer], &["model.final_layernorm", "lm_head"])
        .tensors(&[("model.final_layernorm.bias", &[WIDTH]), ("lm_head.bias", &[VOCAB])])
}

#[test]
fn phi_has_as_many_heads_of_keys_and_as_wide_layers_as_it_says() {
    for (heads_kv, stated, inner) in [(KV, json!(KV), FF), (HEADS, Value::Null, 4 * WIDTH)] {
        let tiny = phi(
            json!({"num_key_value_heads": stated, "intermediate_size": inner}),
            heads_kv,
            inner,
        );
        let gguf = tiny.convert().unwrap();
        assert_sound(&gguf);
        assert_eq!(key(&gguf, "phi2.attention.head_count_kv"), heads_kv);
        assert_eq!(key(&gguf, "phi2.feed_forward_length"), inner);
        let stored = tiny.values("model.layers.1.self_attn.k_proj.weight");
        assert_eq!(elements(&gguf, "blk.1.attn_k.weight"), stored);
    }
    let message = phi(json!({"qk_layernorm": true}), KV, FF).convert().unwrap_err().to_string();
    assert!(message.contains("`qk_layernorm` is true"), "{message}");
}

#[test]
fn a_tied_output_is_written_where_programs_want_one() {
    let norms = vec![
        listed("self_attn.q_norm", &[HEADS * HEAD]),
        listed("self_attn.k_norm", &[KV * HEAD]),
        listed("post_attention_layernorm", &[WIDTH]),
        listed("post_feedforward_layernorm", &[WIDTH]),
    ];
    let layer = vec![norms, attention(), gated("mlp", FF)];
    let fields = json!({"tie_word_embeddings": true, "rms_norm_eps": 1e-6});
    let tiny = checkpoint(config("Olmo2ForCausalLM", "olmo2", fields), layer, &["model.norm"]);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    let embedding = tiny.values("model.embed_tokens.weight");
    assert_eq!(elements(&gguf, "output.weight"), embedding);
    assert_eq!(elements(&gguf, "token_embd.weight"), embedding);
}

#[test]
fn granite_without_experts_is_as_wide_as_what_is_shared() {
    let layer = vec![
        norms(&["input_layernorm", "post_attention_layernorm"]),
        attention(),
        vec![
            listed("shared_mlp.input_linear", &[2 * 32, WIDTH]),
            listed("shared_mlp.output_linear", &[WIDTH, 32]),
        ],
    ];
    let fields = json!({"num_local_experts": 0, "num_experts_per_tok": 2,
        "shared_intermediate_size": 32, "rms_norm_eps": 1e-6});
    let config = config("GraniteMoeSharedForCausalLM", "granitemoeshared", fields);
    let gguf = checkpoint(config, layer, &["model.norm"]).convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "granitemoe.feed_forward_length"), 32);
    assert_eq!(key(&gguf, "granitemoe.expert_used_count"), 0);
}

#[test]
fn a_model_without_a_head_has_names_without_a_prefix() {
    for class in ["LlamaModel", "MistralModel", "Qwen2Model", "Qwen3Model", "Qwen3ForCausalLM"] {
        let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD});
        let of_heads = vec![
            norms(&[]),
            vec![
                ("layers.{}.self_attn.q_norm.weight".to_owned(), vec![HEAD]),
                ("layers.{}.self_attn.k_norm.weight".to_owned(), vec![HEAD]),
            ],
        ];
        let bare: Vec<Listed> = llama_block()
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
        let layer: Vec<Listed> = layer.into_iter().flatten().collect();
        let layer: Vec<_> = layer.iter().map(|(name, shape)| (&**name, &**shape)).collect();
        let tiny = tiny.layers(LAYERS, &layer);
        let modules =
            json!([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]);
        tiny.file("modules.json", modules.to_string());
        std::fs::create_dir(tiny.path().join("1_Pooling")).unwrap();
        tiny.file("1_Pooling/config.json", r#"{"pooling_mode_lasttoken": true}"#);
        let gguf = tiny.convert().unwrap_or_else(|error| panic!("{class}: {error}"));
        assert_sound(&gguf);
        if class.starts_with("Qwen") {
            let architecture = key(&gguf, "general.architecture");
            let pooling = format!("{}.pooling_type", architecture.as_str().unwrap());
            assert_eq!(key(&gguf, &pooling), 3, "{class}");
        }
    }
}

#[test]
fn heads_for_training_are_left_out() {
    for class in ["BertForPreTraining", "BertForNextSentencePrediction"] {
        let tiny = bert(class, json!({})).tensors(&[("cls.seq_relationship.weight", &[2, 8])]);
        tiny.file("vocab.txt", PIECES);
        assert_sound(&tiny.convert().unwrap());
    }
    for class in
        ["RobertaForMaskedLM", "XLMRobertaForMaskedLM", "CamembertForMaskedLM", "CamembertModel"]
    {
        let tiny = bert(class, json!({})).tensors(&[("lm_head.dense.weight", &[8, 8])]);
        let gguf = tiny.byte_level(6).convert().unwrap_or_else(|error| panic!("{class}: {error}"));
        assert_sound(&gguf);
        assert_eq!(key(&gguf, "bert.context_length"), 4, "{class}");
    }
}

#[test]
fn every_t5_is_one_architecture_or_its_encoder() {
    for class in ["T5Model", "MT5Model"] {
        let gguf = t5(class).tensors(&T5_DECODER).convert().unwrap();
        assert_sound(&gguf);
        assert_eq!(key(&gguf, "general.architecture"), "t5");
    }
    for class in ["MT5EncoderModel", "UMT5EncoderModel"] {
        let gguf = t5(class).convert().unwrap();
        assert_sound(&gguf);
        assert_eq!(key(&gguf, "general.architecture"), "t5encoder");
    }
}

#[test]
fn another_head_is_refused_with_what_to_do() {
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
fn what_has_no_place_in_a_file_is_refused_by_its_field() {
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
        assert!(message.contains(field) && message.contains("no program"), "{class}: {message}");
    }
}

/// llama.cpp reads no `rope_freqs.weight` of these, and refuses a file with a tensor that it does not
/// read.
#[test]
fn llama3_scaling_is_refused_where_no_tensor_can_say_it() {
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8});
    for class in ["SmolLM3ForCausalLM", "Qwen2ForCausalLM", "GemmaForCausalLM"] {
        let config = config(class, "", json!({"rope_scaling": llama3, "rms_norm_eps": 1e-6}));
        let error = Tiny::new(config).byte_level(VOCAB).convert().unwrap_err();
        assert_eq!(error.code(), "config-unsupported", "{class}: {error}");
        let message = error.to_string();
        assert!(message.contains("`rope_type` is llama3, which no program computes"), "{message}");
    }
}

#[test]
fn a_checkpoint_without_a_tensor_is_refused() {
    let config = config("LlamaForCausalLM", "", json!({"rms_norm_eps": 1e-6}));
    let tiny = Tiny::new(config).byte_level(VOCAB);
    // A buffer of old checkpoints, which programs compute themselves, is no weight.
    let with_buffer = [("model.layers.0.self_attn.rotary_emb.inv_freq", &[2][..])];
    for error in [tiny.convert().unwrap_err(), tiny.tensors(&with_buffer).convert().unwrap_err()] {
        assert_eq!(error.code(), "checkpoint-weights-missing", "{error}");
        assert_eq!(error.fault(), gguf::Fault::Input);
    }
}
