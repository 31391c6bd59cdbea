//! Families, each on a tiny checkpoint whose numbers are known: keys, names, and where every
//! element goes.

mod tiny;

use gguf::{Bytes, Gguf};
use serde_json::{Value, json};
use tiny::{Tiny, assert_sound, elements};

/// A number, text or truth value of the metadata.
fn key(bytes: &Bytes, key: &str) -> Value {
    let model = Gguf::read(bytes).unwrap();
    let value = model.metadata().get(key).unwrap_or_else(|| panic!("no key {key}"));
    match value {
        gguf::Value::Bool(flag) => json!(flag),
        gguf::Value::F32(number) => json!(number),
        gguf::Value::String(_) => json!(value.as_str().unwrap()),
        _ => json!(value.to_i64().unwrap()),
    }
}

/// The rows of a matrix with `columns` columns.
fn rows(values: &[f32], columns: usize) -> Vec<Vec<f32>> {
    values.chunks_exact(columns).map(<[f32]>::to_vec).collect()
}

/// These rows, one after the other.
fn picked(values: &[f32], columns: usize, which: &[usize]) -> Vec<f32> {
    let rows = rows(values, columns);
    which.iter().flat_map(|&row| rows[row].clone()).collect()
}

#[test]
fn gpt2_is_transposed() {
    let tiny = Tiny::new(json!({
        "architectures": ["GPT2LMHeadModel"], "n_embd": 8, "n_head": 2, "n_layer": 1,
        "n_positions": 4, "layer_norm_epsilon": 1e-5, "vocab_size": 6, "n_inner": 24,
    }))
    .byte_level(6)
    .tensors(&[
        ("transformer.wte.weight", &[6, 8]),
        ("transformer.wpe.weight", &[4, 8]),
        ("transformer.ln_f.weight", &[8]),
        ("transformer.ln_f.bias", &[8]),
        ("lm_head.weight", &[6, 8]),
        ("transformer.h.0.attn.bias", &[1, 1, 4, 4]),
        ("transformer.h.0.attn.masked_bias", &[]),
        ("transformer.h.0.ln_1.weight", &[8]),
        ("transformer.h.0.ln_1.bias", &[8]),
        ("transformer.h.0.attn.c_attn.weight", &[8, 24]),
        ("transformer.h.0.attn.c_attn.bias", &[24]),
        ("transformer.h.0.attn.c_proj.weight", &[8, 8]),
        ("transformer.h.0.attn.c_proj.bias", &[8]),
        ("transformer.h.0.ln_2.weight", &[8]),
        ("transformer.h.0.ln_2.bias", &[8]),
        ("transformer.h.0.mlp.c_fc.weight", &[8, 24]),
        ("transformer.h.0.mlp.c_fc.bias", &[24]),
        ("transformer.h.0.mlp.c_proj.weight", &[24, 8]),
        ("transformer.h.0.mlp.c_proj.bias", &[8]),
    ]);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "gpt2.feed_forward_length"), 24);
    let stored = tiny.values("transformer.h.0.attn.c_attn.weight");
    let turned: Vec<f32> = (0..24)
        .flat_map(|column| (0..8).map(move |row| row * 24 + column))
        .map(|i| stored[i])
        .collect();
    assert_eq!(elements(&gguf, "blk.0.attn_qkv.weight"), turned);
    let bias = tiny.values("transformer.h.0.attn.c_attn.bias");
    assert_eq!(elements(&gguf, "blk.0.attn_qkv.bias"), bias);
    assert_eq!(elements(&gguf, "output.weight"), tiny.values("lm_head.weight"));
}

#[test]
fn gpt_neox_states_an_unusual_base_and_sorts_heads() {
    let config = |fields: Value| {
        let mut config = json!({
            "architectures": ["GPTNeoXForCausalLM"], "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 1, "intermediate_size": 16, "layer_norm_eps": 1e-5,
            "max_position_embeddings": 4, "vocab_size": 6,
        });
        config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        config
    };
    let new = json!({"rope_parameters": {"rope_theta": 50000.0, "partial_rotary_factor": 0.5}});
    let old = json!({"rotary_emb_base": 50000, "rotary_pct": 0.5});
    for fields in [old, new] {
        let tiny = Tiny::new(config(fields)).byte_level(6).tensors(&[
            ("gpt_neox.embed_in.weight", &[6, 8]),
            ("gpt_neox.final_layer_norm.weight", &[8]),
            ("gpt_neox.final_layer_norm.bias", &[8]),
            ("embed_out.weight", &[6, 8]),
            ("gpt_neox.layers.0.attention.rotary_emb.inv_freq", &[1]),
            ("gpt_neox.layers.0.input_layernorm.weight", &[8]),
            ("gpt_neox.layers.0.input_layernorm.bias", &[8]),
            ("gpt_neox.layers.0.attention.query_key_value.weight", &[24, 8]),
            ("gpt_neox.layers.0.attention.query_key_value.bias", &[24]),
            ("gpt_neox.layers.0.attention.dense.weight", &[8, 8]),
            ("gpt_neox.layers.0.attention.dense.bias", &[8]),
            ("gpt_neox.layers.0.post_attention_layernorm.weight", &[8]),
            ("gpt_neox.layers.0.post_attention_layernorm.bias", &[8]),
            ("gpt_neox.layers.0.mlp.dense_h_to_4h.weight", &[16, 8]),
            ("gpt_neox.layers.0.mlp.dense_h_to_4h.bias", &[16]),
            ("gpt_neox.layers.0.mlp.dense_4h_to_h.weight", &[8, 16]),
            ("gpt_neox.layers.0.mlp.dense_4h_to_h.bias", &[8]),
        ]);
        let gguf = tiny.convert().unwrap();
        assert_sound(&gguf);
        assert_eq!(key(&gguf, "gptneox.rope.freq_base"), 50000.0);
        assert_eq!(key(&gguf, "gptneox.rope.dimension_count"), 2);
        // Two heads of four: queries, keys and values of the first, then of the second.
        let order =
            [0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22, 23];
        let stored = tiny.values("gpt_neox.layers.0.attention.query_key_value.weight");
        assert_eq!(elements(&gguf, "blk.0.attn_qkv.weight"), picked(&stored, 8, &order));
        let stored = tiny.values("gpt_neox.layers.0.attention.query_key_value.bias");
        assert_eq!(elements(&gguf, "blk.0.attn_qkv.bias"), picked(&stored, 1, &order));
    }
}

#[test]
fn the_second_falcon_has_groups_and_two_norms() {
    let tiny = Tiny::new(json!({
        "architectures": ["FalconForCausalLM"], "hidden_size": 8, "num_attention_heads": 4,
        "num_kv_heads": 2, "new_decoder_architecture": true, "num_hidden_layers": 1,
        "layer_norm_epsilon": 1e-5, "vocab_size": 6, "rope_theta": 500000.0,
        "ffn_hidden_size": 24, "max_position_embeddings": 8192,
    }))
    .byte_level(6)
    .tensors(&[
        ("transformer.word_embeddings.weight", &[6, 8]),
        ("transformer.ln_f.weight", &[8]),
        ("transformer.ln_f.bias", &[8]),
        ("lm_head.weight", &[6, 8]),
        ("transformer.h.0.ln_attn.weight", &[8]),
        ("transformer.h.0.ln_attn.bias", &[8]),
        ("transformer.h.0.ln_mlp.weight", &[8]),
        ("transformer.h.0.ln_mlp.bias", &[8]),
        ("transformer.h.0.self_attention.query_key_value.weight", &[16, 8]),
        ("transformer.h.0.self_attention.dense.weight", &[8, 8]),
        ("transformer.h.0.mlp.dense_h_to_4h.weight", &[24, 8]),
        ("transformer.h.0.mlp.dense_4h_to_h.weight", &[8, 24]),
    ]);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "falcon.attention.head_count_kv"), 2);
    assert_eq!(key(&gguf, "falcon.context_length"), 8192);
    assert_eq!(key(&gguf, "falcon.rope.freq_base"), 500000.0);
    let order = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];
    let stored = tiny.values("transformer.h.0.self_attention.query_key_value.weight");
    assert_eq!(elements(&gguf, "blk.0.attn_qkv.weight"), picked(&stored, 8, &order));
    let norm = |name: &str| tiny.values(&format!("transformer.h.0.{name}.weight"));
    assert_eq!(elements(&gguf, "blk.0.attn_norm.weight"), norm("ln_mlp"));
    assert_eq!(elements(&gguf, "blk.0.attn_norm_2.weight"), norm("ln_attn"));
}

#[test]
fn starcoder_has_one_head_of_keys_or_one_for_each() {
    for (multi_query, kv_heads, qkv) in [(true, 1, 16), (false, 2, 24)] {
        let tiny = Tiny::new(json!({
            "architectures": ["GPTBigCodeForCausalLM"], "n_embd": 8, "n_head": 2, "n_layer": 1,
            "n_positions": 4, "n_inner": 16, "layer_norm_epsilon": 1e-5, "vocab_size": 6,
            "multi_query": multi_query,
        }))
        .byte_level(6)
        .tensors(&[
            ("transformer.wte.weight", &[6, 8]),
            ("transformer.wpe.weight", &[4, 8]),
            ("transformer.ln_f.weight", &[8]),
            ("transformer.ln_f.bias", &[8]),
            ("transformer.h.0.ln_1.weight", &[8]),
            ("transformer.h.0.ln_1.bias", &[8]),
            ("transformer.h.0.attn.c_attn.weight", &[qkv, 8]),
            ("transformer.h.0.attn.c_attn.bias", &[qkv]),
            ("transformer.h.0.attn.c_proj.weight", &[8, 8]),
            ("transformer.h.0.attn.c_proj.bias", &[8]),
            ("transformer.h.0.ln_2.weight", &[8]),
            ("transformer.h.0.ln_2.bias", &[8]),
            ("transformer.h.0.mlp.c_fc.weight", &[16, 8]),
            ("transformer.h.0.mlp.c_fc.bias", &[16]),
            ("transformer.h.0.mlp.c_proj.weight", &[8, 16]),
            ("transformer.h.0.mlp.c_proj.bias", &[8]),
        ]);
        let gguf = tiny.convert().unwrap();
        assert_sound(&gguf);
        assert_eq!(key(&gguf, "starcoder.attention.head_count_kv"), kv_heads);
        let stored = tiny.values("transformer.h.0.attn.c_attn.bias");
        let found = elements(&gguf, "blk.0.attn_qkv.bias");
        if multi_query {
            assert_eq!(found, stored);
        } else {
            let order = [
                0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22,
                23,
            ];
            assert_eq!(found, picked(&stored, 1, &order));
        }
        let stored = tiny.values("transformer.h.0.mlp.c_fc.weight");
        assert_eq!(elements(&gguf, "blk.0.ffn_up.weight"), stored);
    }
}

#[test]
fn starcoder2_has_norms_with_mean() {
    let tiny = Tiny::new(json!({
        "architectures": ["Starcoder2ForCausalLM"], "hidden_size": 8, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16,
        "norm_epsilon": 1e-5, "max_position_embeddings": 4, "vocab_size": 6, "rope_theta": 999999.0,
    }))
    .byte_level(6)
    .tensors(&[
        ("model.embed_tokens.weight", &[6, 8]),
        ("model.norm.weight", &[8]),
        ("model.norm.bias", &[8]),
    ])
    .layers(
        2,
        &[
            ("model.layers.{}.input_layernorm.weight", &[8]),
            ("model.layers.{}.input_layernorm.bias", &[8]),
            ("model.layers.{}.self_attn.q_proj.weight", &[8, 8]),
            ("model.layers.{}.self_attn.q_proj.bias", &[8]),
            ("model.layers.{}.self_attn.k_proj.weight", &[4, 8]),
            ("model.layers.{}.self_attn.k_proj.bias", &[4]),
            ("model.layers.{}.self_attn.v_proj.weight", &[4, 8]),
            ("model.layers.{}.self_attn.v_proj.bias", &[4]),
            ("model.layers.{}.self_attn.o_proj.weight", &[8, 8]),
            ("model.layers.{}.self_attn.o_proj.bias", &[8]),
            ("model.layers.{}.post_attention_layernorm.weight", &[8]),
            ("model.layers.{}.post_attention_layernorm.bias", &[8]),
            ("model.layers.{}.mlp.c_fc.weight", &[16, 8]),
            ("model.layers.{}.mlp.c_fc.bias", &[16]),
            ("model.layers.{}.mlp.c_proj.weight", &[8, 16]),
            ("model.layers.{}.mlp.c_proj.bias", &[8]),
        ],
    );
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "starcoder2.attention.layer_norm_epsilon"), json!(1e-5f32));
    assert_eq!(key(&gguf, "starcoder2.rope.freq_base"), 999999.0);
    let stored = tiny.values("model.layers.1.self_attn.k_proj.weight");
    assert_eq!(elements(&gguf, "blk.1.attn_k.weight"), stored);
}

#[test]
fn mamba2_spreads_numbers_over_heads() {
    let tiny = Tiny::new(json!({
        "architectures": ["Mamba2ForCausalLM"], "hidden_size": 8, "expand": 2, "head_dim": 4,
        "n_groups": 2, "state_size": 4, "conv_kernel": 4, "num_hidden_layers": 1,
        "layer_norm_epsilon": 1e-5, "vocab_size": 6, "pad_vocab_size_multiple": 1,
    }))
    .byte_level(6)
    .tensors(&[
        ("backbone.embeddings.weight", &[6, 8]),
        ("backbone.norm_f.weight", &[8]),
        ("lm_head.weight", &[6, 8]),
        ("backbone.layers.0.norm.weight", &[8]),
        ("backbone.layers.0.mixer.A_log", &[4]),
        ("backbone.layers.0.mixer.D", &[4]),
        ("backbone.layers.0.mixer.dt_bias", &[4]),
        ("backbone.layers.0.mixer.conv1d.weight", &[32, 1, 4]),
        ("backbone.layers.0.mixer.conv1d.bias", &[32]),
        ("backbone.layers.0.mixer.in_proj.weight", &[52, 8]),
        ("backbone.layers.0.mixer.norm.weight", &[16]),
        ("backbone.layers.0.mixer.out_proj.weight", &[8, 16]),
    ]);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "mamba2.ssm.time_step_rank"), 4);
    let exp = |x: &f32| -(f64::from(*x).exp() as f32);
    let decay: Vec<f32> = tiny.values("backbone.layers.0.mixer.A_log").iter().map(exp).collect();
    assert_eq!(elements(&gguf, "blk.0.ssm_a"), decay);
    let bias = tiny.values("backbone.layers.0.mixer.dt_bias");
    assert_eq!(elements(&gguf, "blk.0.ssm_dt.bias"), bias);
}

const BERT: [(&str, &[usize]); 7] = [
    ("embeddings.word_embeddings.weight", &[6, 8]),
    ("embeddings.position_embeddings.weight", &[6, 8]),
    ("embeddings.token_type_embeddings.weight", &[2, 8]),
    ("embeddings.LayerNorm.gamma", &[8]),
    ("embeddings.LayerNorm.beta", &[8]),
    ("embeddings.position_ids", &[1, 6]),
    ("cls.predictions.bias", &[6]),
];
const POOLER: [(&str, &[usize]); 2] =
    [("bert.pooler.dense.weight", &[8, 8]), ("bert.pooler.dense.bias", &[8])];
const BERT_LAYER: [(&str, &[usize]); 16] = [
    ("encoder.layer.{}.attention.self.query.weight", &[8, 8]),
    ("encoder.layer.{}.attention.self.query.bias", &[8]),
    ("encoder.layer.{}.attention.self.key.weight", &[8, 8]),
    ("encoder.layer.{}.attention.self.key.bias", &[8]),
    ("encoder.layer.{}.attention.self.value.weight", &[8, 8]),
    ("encoder.layer.{}.attention.self.value.bias", &[8]),
    ("encoder.layer.{}.attention.output.dense.weight", &[8, 8]),
    ("encoder.layer.{}.attention.output.dense.bias", &[8]),
    ("encoder.layer.{}.attention.output.LayerNorm.weight", &[8]),
    ("encoder.layer.{}.attention.output.LayerNorm.bias", &[8]),
    ("encoder.layer.{}.intermediate.dense.weight", &[16, 8]),
    ("encoder.layer.{}.intermediate.dense.bias", &[16]),
    ("encoder.layer.{}.output.dense.weight", &[8, 16]),
    ("encoder.layer.{}.output.dense.bias", &[8]),
    ("encoder.layer.{}.output.LayerNorm.weight", &[8]),
    ("encoder.layer.{}.output.LayerNorm.bias", &[8]),
];

fn bert(class: &str, fields: Value) -> Tiny {
    let mut config = json!({
        "architectures": [class], "hidden_size": 8, "num_attention_heads": 2,
        "num_hidden_layers": 1, "intermediate_size": 16, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 6, "type_vocab_size": 2, "vocab_size": 6,
    });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let prefix = if class.starts_with("Bert") { "bert." } else { "roberta." };
    let mut tiny = Tiny::new(config);
    for (name, shape) in BERT {
        tiny = tiny.tensors(&[(&format!("{prefix}{name}"), shape)]);
    }
    for (name, shape) in BERT_LAYER {
        tiny = tiny.layers(1, &[(&format!("{prefix}{name}"), shape)]);
    }
    tiny
}

const PIECES: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n";

#[test]
fn bert_classifies_by_way_of_its_pooler() {
    let labels = json!({"id2label": {"0": "bad", "1": "good", "2": "neither"}});
    let tiny = bert("BertForSequenceClassification", labels)
        .tensors(&POOLER)
        .tensors(&[("classifier.weight", &[3, 8]), ("classifier.bias", &[3])]);
    tiny.file("vocab.txt", PIECES);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "bert.attention.causal"), false);
    assert_eq!(elements(&gguf, "cls.weight"), tiny.values("bert.pooler.dense.weight"));
    assert_eq!(elements(&gguf, "cls.output.weight"), tiny.values("classifier.weight"));
    let norm = tiny.values("bert.embeddings.LayerNorm.gamma");
    assert_eq!(elements(&gguf, "token_embd_norm.weight"), norm);
    let model = Gguf::read(&gguf).unwrap();
    let labels = model.metadata().get("bert.classifier.output_labels").unwrap();
    let labels: Vec<String> =
        labels.as_array().unwrap().iter().map(|l| l.as_str().unwrap().to_owned()).collect();
    assert_eq!(labels, ["bad", "good", "neither"]);
}

#[test]
fn bert_as_an_encoder_says_how_it_is_pooled() {
    let labels = json!({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}});
    let tiny = bert("BertModel", labels).tensors(&POOLER);
    tiny.file("vocab.txt", PIECES);
    let modules = json!([{"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]);
    tiny.file("modules.json", modules.to_string());
    std::fs::create_dir(tiny.path().join("1_Pooling")).unwrap();
    tiny.file("1_Pooling/config.json", r#"{"pooling_mode_cls_token": true}"#);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "bert.pooling_type"), 2);
    let model = Gguf::read(&gguf).unwrap();
    assert!(model.metadata().get("bert.classifier.output_labels").is_none());
    assert!(!model.tensors().iter().any(|tensor| tensor.name.starts_with("cls")));
}

#[test]
fn roberta_counts_positions_from_behind_the_padding() {
    let tiny = bert("RobertaForSequenceClassification", json!({"id2label": {"0": "LABEL_0"}}))
        .tensors(&[
            ("classifier.dense.weight", &[8, 8]),
            ("classifier.dense.bias", &[8]),
            ("classifier.out_proj.weight", &[1, 8]),
            ("classifier.out_proj.bias", &[1]),
        ])
        .byte_level(6);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "bert.context_length"), 4);
    assert_eq!(key(&gguf, "tokenizer.ggml.token_type_count"), 2);
    let tiny = bert("RobertaModel", json!({"pad_token_id": 1})).byte_level(6);
    let gguf = tiny.convert().unwrap();
    let stored = tiny.values("roberta.embeddings.position_embeddings.weight");
    assert_eq!(elements(&gguf, "position_embd.weight"), picked(&stored, 8, &[2, 3, 4, 5]));
}

#[test]
fn nomic_bert_is_held_to_what_it_was_trained_on() {
    let tiny = Tiny::new(json!({
        "architectures": ["NomicBertModel"], "n_embd": 8, "n_head": 2, "n_layer": 1, "n_inner": 16,
        "n_positions": 8192, "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000,
        "type_vocab_size": 2, "vocab_size": 6, "causal": false, "prenorm": false,
    }))
    .tensors(&[
        ("embeddings.word_embeddings.weight", &[6, 8]),
        ("embeddings.token_type_embeddings.weight", &[2, 8]),
        ("emb_ln.weight", &[8]),
        ("emb_ln.bias", &[8]),
        ("encoder.layers.0.attn.Wqkv.weight", &[24, 8]),
        ("encoder.layers.0.attn.out_proj.weight", &[8, 8]),
        ("encoder.layers.0.norm1.weight", &[8]),
        ("encoder.layers.0.norm1.bias", &[8]),
        ("encoder.layers.0.mlp.fc11.weight", &[16, 8]),
        ("encoder.layers.0.mlp.fc12.weight", &[16, 8]),
        ("encoder.layers.0.mlp.fc2.weight", &[8, 16]),
        ("encoder.layers.0.norm2.weight", &[8]),
        ("encoder.layers.0.norm2.bias", &[8]),
    ]);
    tiny.file("vocab.txt", PIECES);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "nomic-bert.context_length"), 2048);
    assert_eq!(key(&gguf, "nomic-bert.rope.freq_base"), 1000.0);
    let gate = tiny.values("encoder.layers.0.mlp.fc12.weight");
    assert_eq!(elements(&gguf, "blk.0.ffn_gate.weight"), gate);
}

const T5_ENCODER: [(&str, &[usize]); 10] = [
    ("encoder.embed_tokens.weight", &[6, 8]),
    ("encoder.final_layer_norm.weight", &[8]),
    ("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", &[4, 2]),
    ("encoder.block.0.layer.0.SelfAttention.q.weight", &[8, 8]),
    ("encoder.block.0.layer.0.SelfAttention.k.weight", &[8, 8]),
    ("encoder.block.0.layer.0.SelfAttention.v.weight", &[8, 8]),
    ("encoder.block.0.layer.0.SelfAttention.o.weight", &[8, 8]),
    ("encoder.block.0.layer.0.layer_norm.weight", &[8]),
    ("encoder.block.0.layer.1.layer_norm.weight", &[8]),
    ("encoder.block.0.layer.1.DenseReluDense.wo.weight", &[8, 16]),
];

fn t5(class: &str) -> Tiny {
    let tiny = Tiny::new(json!({
        "architectures": [class], "d_model": 8, "d_kv": 4, "d_ff": 16, "num_heads": 2,
        "num_layers": 1, "num_decoder_layers": 1, "relative_attention_num_buckets": 4,
        "layer_norm_epsilon": 1e-6, "decoder_start_token_id": 0, "vocab_size": 6,
    }))
    .tensors(&T5_ENCODER)
    .tensors(&[
        ("shared.weight", &[6, 8]),
        ("encoder.block.0.layer.1.DenseReluDense.wi_0.weight", &[16, 8]),
        ("encoder.block.0.layer.1.DenseReluDense.wi_1.weight", &[16, 8]),
    ]);
    let vocab = json!([
        ["<pad>", 0.0],
        ["</s>", 0.0],
        ["<unk>", 0.0],
        ["\u{2581}", -2.0],
        ["a", -3.0],
        ["\u{2581}a", -1.5]
    ]);
    let special = |id: u32, text: &str| json!({"id": id, "content": text, "special": true});
    let tokenizer = json!({
        "added_tokens": [special(0, "<pad>"), special(1, "</s>"), special(2, "<unk>")],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAECAw=="},
        "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 2, "vocab": vocab},
    });
    tiny.file("tokenizer.json", tokenizer.to_string());
    tiny.file("tokenizer_config.json", r#"{"tokenizer_class": "T5Tokenizer"}"#);
    tiny
}

#[test]
fn t5_has_one_embedding_however_often_it_is_stored() {
    let tiny = t5("T5ForConditionalGeneration").tensors(&[
        ("decoder.embed_tokens.weight", &[6, 8]),
        ("decoder.final_layer_norm.weight", &[8]),
        ("decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", &[4, 2]),
        ("decoder.block.0.layer.0.SelfAttention.q.weight", &[8, 8]),
        ("decoder.block.0.layer.0.SelfAttention.k.weight", &[8, 8]),
        ("decoder.block.0.layer.0.SelfAttention.v.weight", &[8, 8]),
        ("decoder.block.0.layer.0.SelfAttention.o.weight", &[8, 8]),
        ("decoder.block.0.layer.0.layer_norm.weight", &[8]),
        ("decoder.block.0.layer.1.EncDecAttention.q.weight", &[8, 8]),
        ("decoder.block.0.layer.1.EncDecAttention.k.weight", &[8, 8]),
        ("decoder.block.0.layer.1.EncDecAttention.v.weight", &[8, 8]),
        ("decoder.block.0.layer.1.EncDecAttention.o.weight", &[8, 8]),
        ("decoder.block.0.layer.1.layer_norm.weight", &[8]),
        ("decoder.block.0.layer.2.layer_norm.weight", &[8]),
        ("decoder.block.0.layer.2.DenseReluDense.wi_0.weight", &[16, 8]),
        ("decoder.block.0.layer.2.DenseReluDense.wi_1.weight", &[16, 8]),
        ("decoder.block.0.layer.2.DenseReluDense.wo.weight", &[8, 16]),
        ("lm_head.weight", &[6, 8]),
    ]);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(elements(&gguf, "token_embd.weight"), tiny.values("decoder.embed_tokens.weight"));
    let gate = tiny.values("decoder.block.0.layer.2.DenseReluDense.wi_0.weight");
    assert_eq!(elements(&gguf, "dec.blk.0.ffn_gate.weight"), gate);
    assert_eq!(key(&gguf, "t5.context_length"), 512);
    assert_eq!(key(&gguf, "t5.decoder_start_token_id"), 0);
    assert_eq!(key(&gguf, "tokenizer.ggml.model"), "t5");
    assert_eq!(key(&gguf, "tokenizer.ggml.add_space_prefix"), true);
    let model = Gguf::read(&gguf).unwrap();
    let map = model.metadata().get("tokenizer.ggml.precompiled_charsmap").unwrap();
    let map: Vec<i64> = map.as_array().unwrap().iter().map(|b| b.to_i64().unwrap()).collect();
    assert_eq!(map, [0, 1, 2, 3]);
    let types = model.metadata().get("tokenizer.ggml.token_type").unwrap();
    let types: Vec<i64> = types.as_array().unwrap().iter().map(|t| t.to_i64().unwrap()).collect();
    assert_eq!(types, [3, 3, 2, 1, 1, 1]);
}

#[test]
fn t5_without_its_decoder_is_an_architecture_of_its_own() {
    let gguf = t5("T5EncoderModel").convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "general.architecture"), "t5encoder");
}

#[test]
fn rwkv_keeps_its_vectors() {
    let tiny = Tiny::new(json!({
        "architectures": ["RwkvForCausalLM"], "hidden_size": 8, "attention_hidden_size": 8,
        "intermediate_size": 32, "num_hidden_layers": 2, "context_length": 16,
        "layer_norm_epsilon": 1e-5, "rescale_every": 6, "vocab_size": 6,
    }))
    .tensors(&[
        ("rwkv.embeddings.weight", &[6, 8]),
        ("rwkv.blocks.0.pre_ln.weight", &[8]),
        ("rwkv.blocks.0.pre_ln.bias", &[8]),
        ("rwkv.ln_out.weight", &[8]),
        ("rwkv.ln_out.bias", &[8]),
        ("head.weight", &[6, 8]),
    ])
    .layers(
        2,
        &[
            ("rwkv.blocks.{}.ln1.weight", &[8]),
            ("rwkv.blocks.{}.ln1.bias", &[8]),
            ("rwkv.blocks.{}.ln2.weight", &[8]),
            ("rwkv.blocks.{}.ln2.bias", &[8]),
            ("rwkv.blocks.{}.attention.time_decay", &[8]),
            ("rwkv.blocks.{}.attention.time_first", &[8]),
            ("rwkv.blocks.{}.attention.time_mix_key", &[1, 1, 8]),
            ("rwkv.blocks.{}.attention.time_mix_value", &[1, 1, 8]),
            ("rwkv.blocks.{}.attention.time_mix_receptance", &[1, 1, 8]),
            ("rwkv.blocks.{}.attention.key.weight", &[8, 8]),
            ("rwkv.blocks.{}.attention.value.weight", &[8, 8]),
            ("rwkv.blocks.{}.attention.receptance.weight", &[8, 8]),
            ("rwkv.blocks.{}.attention.output.weight", &[8, 8]),
            ("rwkv.blocks.{}.feed_forward.time_mix_key", &[1, 1, 8]),
            ("rwkv.blocks.{}.feed_forward.time_mix_receptance", &[1, 1, 8]),
            ("rwkv.blocks.{}.feed_forward.key.weight", &[32, 8]),
            ("rwkv.blocks.{}.feed_forward.receptance.weight", &[8, 8]),
            ("rwkv.blocks.{}.feed_forward.value.weight", &[8, 32]),
        ],
    );
    tiny.file("rwkv_vocab_v20230424.txt", "1 '\\x00' 1\n2 b'\\xff' 1\n3 '\\'' 1\n");
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "rwkv.architecture_version"), 4);
    assert_eq!(key(&gguf, "rwkv.rescale_every_n_layers"), 6);
    assert_eq!(key(&gguf, "tokenizer.ggml.model"), "rwkv");
    assert_eq!(key(&gguf, "tokenizer.ggml.bos_token_id"), 0);
    assert_eq!(key(&gguf, "tokenizer.chat_template"), "rwkv-world");
    for (ours, foreign) in [
        ("blk.1.time_mix_decay.weight", "rwkv.blocks.1.attention.time_decay"),
        ("blk.1.time_mix_lerp_r.weight", "rwkv.blocks.1.attention.time_mix_receptance"),
        ("blk.1.channel_mix_lerp_k.weight", "rwkv.blocks.1.feed_forward.time_mix_key"),
        ("token_embd_norm.bias", "rwkv.blocks.0.pre_ln.bias"),
    ] {
        assert_eq!(elements(&gguf, ours), tiny.values(foreign), "{ours}");
    }
}

/// For each class a configuration, and the fields without which it says too little.
fn configurations() -> Vec<(Value, &'static [&'static str])> {
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

/// The names of a hyper-parameter: an error names the first.
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
fn a_missing_hyper_parameter_is_named() {
    for (config, fields) in configurations() {
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
fn tensors_of_another_model_are_named() {
    for (config, _) in configurations() {
        let tiny = Tiny::new(config.clone()).tensors(&[("model.layers.0.mystery.weight", &[2])]);
        let message = tiny.byte_level(6).convert().unwrap_err().to_string();
        assert!(message.contains("model.layers.0.mystery.weight"), "{message}");
    }
}

#[test]
fn what_no_program_computes_is_refused() {
    for (class, field, value) in [
        ("FalconForCausalLM", "alibi", true),
        ("FalconForCausalLM", "parallel_attn", false),
        ("BloomForCausalLM", "apply_residual_connection_post_layernorm", true),
        ("GPT2LMHeadModel", "scale_attn_by_inverse_layer_idx", true),
        ("GPTJForCausalLM", "rotary", false),
        ("NomicBertModel", "prenorm", true),
    ] {
        let all = configurations();
        let (config, _) = all.iter().find(|(c, _)| c["architectures"][0] == class).unwrap();
        let mut config = config.clone();
        config[field] = json!(value);
        let message = Tiny::new(config).byte_level(6).convert().unwrap_err().to_string();
        assert!(message.contains(field) && message.contains("no program"), "{message}");
    }
    let mut config = json!({"architectures": ["MambaForCausalLM"], "hidden_size": 8,
        "num_hidden_layers": 1, "intermediate_size": 24});
    let message = Tiny::new(config.clone()).byte_level(6).convert().unwrap_err().to_string();
    assert!(message.contains("24 is not twice the width 8"), "{message}");
    config["architectures"] = json!(["RwkvForCausalLM"]);
    config["attention_hidden_size"] = json!(16);
    let message = Tiny::new(config).byte_level(6).convert().unwrap_err().to_string();
    assert!(message.contains("attention_hidden_size"), "{message}");
}

#[test]
fn a_vocabulary_larger_than_the_embedding_is_refused() {
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
