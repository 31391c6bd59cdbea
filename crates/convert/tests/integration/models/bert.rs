//! BERT and other encoders without a decoder.

use gguf::Gguf;
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use safetensors::SafeTensors;
use serde_json::{Value, json};

use crate::fixtures::decoder::{
    FF, HEAD, HEADS, LAYERS, TIED, VOCAB, WIDTH, borrowed, checkpoint, config, llama_layer, merged,
};
use crate::fixtures::round_trip::{
    assert_encoder_round_trip, assert_round_trip, assert_round_trip_with_findings,
};
use crate::fixtures::sentence_transformers::{add_pooling, write_dense_weights};
use crate::fixtures::tokenizer_files::{WORD_PIECES, use_unigram};
use crate::fixtures::{Tensors, Tiny, assert_valid, elements, gather_rows, metadata_value};

const BERT: Tensors = &[
    ("embeddings.word_embeddings.weight", &[6, 8]),
    ("embeddings.position_embeddings.weight", &[6, 8]),
    ("embeddings.token_type_embeddings.weight", &[2, 8]),
    ("embeddings.LayerNorm.gamma", &[8]),
    ("embeddings.LayerNorm.beta", &[8]),
];

const BERT_LAYER: Tensors = &[
    ("attention.self.query", &[8, 8]),
    ("attention.self.key", &[8, 8]),
    ("attention.self.value", &[8, 8]),
    ("attention.output.dense", &[8, 8]),
    ("intermediate.dense", &[16, 8]),
    ("output.dense", &[8, 16]),
    ("attention.output.LayerNorm", &[8]),
    ("output.LayerNorm", &[8]),
];

/// Builds BERT with two layers, whose tensor names begin with `prefix`.
fn bert(class: &str, prefix: &str, fields: Value) -> Tiny {
    let config = merged(
        json!({
            "architectures": [class], "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 2, "intermediate_size": 16, "layer_norm_eps": 1e-12,
            "max_position_embeddings": 6, "type_vocab_size": 2, "vocab_size": 6,
        }),
        fields,
    );
    let mut tiny = Tiny::new(config);
    for (name, shape) in BERT {
        tiny = tiny.tensors(&[(&format!("{prefix}{name}"), shape)]);
    }
    for (name, shape) in BERT_LAYER {
        let name = format!("{prefix}encoder.layer.{{}}.{name}");
        tiny = tiny.layers(
            2,
            &[(&format!("{name}.weight"), shape), (&format!("{name}.bias"), &shape[..1])],
        );
    }
    tiny
}

/// Builds BERT or RoBERTa with tensors that the conversion skips: position ids and the bias of a language model head.
fn bert_with_extra_tensors(class: &str, fields: Value) -> Tiny {
    let prefix = if class.starts_with("Bert") { "bert." } else { "roberta." };
    bert(class, prefix, fields).tensors(&[
        (&format!("{prefix}embeddings.position_ids"), &[1, 6]),
        (&format!("{prefix}cls.predictions.bias"), &[6]),
    ])
}

#[test]
pub fn bert_round_trip_with_pooling() {
    for field in ["pooling_mode_mean_tokens", "pooling_mode_cls_token", "pooling_mode_lasttoken"] {
        let tiny = bert("BertModel", "bert.", json!({}));
        tiny.file("vocab.txt", WORD_PIECES);
        add_pooling(&tiny, field);
        let exported = assert_encoder_round_trip(&tiny);
        let config = exported.json("config.json");
        assert_eq!(config["architectures"][0], "BertModel");
        assert_eq!(config["type_vocab_size"], 2);
        let pooling = exported.json("1_Pooling/config.json");
        assert_eq!(
            (&pooling[field], &pooling["word_embedding_dimension"]),
            (&json!(true), &json!(8))
        );
        let chosen = pooling.as_object().unwrap().values().filter(|value| **value == true);
        assert_eq!(chosen.count(), 1);
    }
}

#[test]
fn bert_classifier_round_trip() {
    let labels = json!({"id2label": {"0": "bad", "1": "good", "2": "neither"}});
    let tiny = bert("BertForSequenceClassification", "bert.", labels.clone()).tensors(&[
        ("bert.pooler.dense.weight", &[8, 8]),
        ("bert.pooler.dense.bias", &[8]),
        ("classifier.weight", &[3, 8]),
        ("classifier.bias", &[3]),
    ]);
    tiny.file("vocab.txt", WORD_PIECES);
    let config = assert_encoder_round_trip(&tiny).json("config.json");
    assert_eq!(config["id2label"], labels["id2label"]);
    assert_eq!(config["label2id"]["neither"], 2);
    // The default labels of `transformers` are not exported.
    let tiny = bert("BertModel", "", json!({}));
    tiny.file("vocab.txt", WORD_PIECES);
    assert!(assert_encoder_round_trip(&tiny).json("config.json").get("id2label").is_none());
}

#[test]
pub fn roberta_round_trip_restores_position_offset() {
    let tiny = bert("RobertaModel", "", json!({"pad_token_id": 1}));
    let special = |id: u32, text: &str| json!({"id": id, "content": text, "special": true});
    let tokenizer = json!({
        "added_tokens": [special(0, "<s>"), special(1, "<pad>"), special(2, "</s>")],
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
        "decoder": { "type": "ByteLevel" },
        "model": { "type": "BPE", "vocab": {"a": 3, "b": 4, "c": 5}, "merges": [] },
    });
    tiny.file("tokenizer.json", tokenizer.to_string());
    let exported = assert_encoder_round_trip(&tiny);
    let config = exported.json("config.json");
    assert_eq!(config["architectures"][0], "RobertaModel");
    assert_eq!(
        (&config["max_position_embeddings"], &config["pad_token_id"]),
        (&json!(6), &json!(1))
    );
    let tensors = exported.weights();
    let tensors = SafeTensors::deserialize(&tensors).unwrap();
    let positions = tensors.tensor("embeddings.position_embeddings.weight").unwrap();
    let positions: Vec<f32> = positions
        .data()
        .chunks_exact(4)
        .map(|x| f32::from_le_bytes(x.try_into().unwrap()))
        .collect();
    assert_eq!(positions[..16], [0.0; 16]);
    assert_eq!(positions[16..], elements(&tiny.convert().unwrap(), "position_embd.weight"));
}

#[test]
fn roberta_classifier_round_trip() {
    let tiny = bert("RobertaForSequenceClassification", "roberta.", json!({}))
        .tensors(&[
            ("classifier.dense.weight", &[8, 8]),
            ("classifier.dense.bias", &[8]),
            ("classifier.out_proj.weight", &[2, 8]),
            ("classifier.out_proj.bias", &[2]),
        ])
        .byte_level(6);
    let config = assert_encoder_round_trip(&tiny).json("config.json");
    assert_eq!(config["architectures"][0], "RobertaForSequenceClassification");
    assert_eq!(config["id2label"], json!({"0": "LABEL_0", "1": "LABEL_1"}));
}

#[test]
fn xlm_roberta_round_trip_by_unigram_vocabulary() {
    let tiny = bert("XLMRobertaModel", "", json!({"pad_token_id": 1}));
    let config = json!({"tokenizer_class": "XLMRobertaTokenizer", "bos_token": "<s>",
        "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"});
    use_unigram(&tiny, &["<s>", "<pad>", "</s>", "<unk>"], config);
    let config = assert_encoder_round_trip(&tiny).json("config.json");
    assert_eq!(
        (&config["architectures"][0], &config["model_type"]),
        (&json!("XLMRobertaModel"), &json!("xlm-roberta"))
    );
}

#[test]
pub fn distilbert_round_trip() {
    let config = json!({"architectures": ["DistilBertModel"], "model_type": "distilbert",
        "dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": FF,
        "max_position_embeddings": 16, "vocab_size": VOCAB});
    let mut layer = Vec::new();
    for (name, shape) in [
        ("attention.q_lin", &[WIDTH, WIDTH][..]),
        ("attention.k_lin", &[WIDTH, WIDTH]),
        ("attention.v_lin", &[WIDTH, WIDTH]),
        ("attention.out_lin", &[WIDTH, WIDTH]),
        ("sa_layer_norm", &[WIDTH]),
        ("ffn.lin1", &[FF, WIDTH]),
        ("ffn.lin2", &[WIDTH, FF]),
        ("output_layer_norm", &[WIDTH]),
    ] {
        layer.push((format!("transformer.layer.{{}}.{name}.weight"), shape));
        layer.push((format!("transformer.layer.{{}}.{name}.bias"), &shape[..1]));
    }
    let layer: Vec<(&str, &[usize])> =
        layer.iter().map(|(name, shape)| (&**name, *shape)).collect();
    let tiny = Tiny::new(config).layers(LAYERS, &layer).tensors(&[
        ("embeddings.word_embeddings.weight", &[VOCAB, WIDTH]),
        ("embeddings.position_embeddings.weight", &[16, WIDTH]),
        ("embeddings.LayerNorm.weight", &[WIDTH]),
        ("embeddings.LayerNorm.bias", &[WIDTH]),
    ]);
    tiny.file("vocab.txt", WORD_PIECES);
    assert_eq!(assert_round_trip_with_findings(&tiny).config["n_layers"], LAYERS);
}

#[test]
pub fn eurobert_and_modernbert_round_trip() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 2.5e5, "head_dim": HEAD,
        "classifier_pooling": "mean"});
    let tiny = checkpoint(config("EuroBertModel", "eurobert", fields), llama_layer(), TIED)
        .with_bos_and_eos();
    assert_eq!(assert_round_trip(&tiny).config["classifier_pooling"], "mean");
    let layer: Vec<(&str, &[usize])> = vec![
        ("layers.{}.attn.Wqkv.weight", &[3 * WIDTH, WIDTH]),
        ("layers.{}.attn.Wo.weight", &[WIDTH, WIDTH]),
        ("layers.{}.mlp_norm.weight", &[WIDTH]),
        ("layers.{}.mlp.Wi.weight", &[2 * FF, WIDTH]),
        ("layers.{}.mlp.Wo.weight", &[WIDTH, FF]),
    ];
    let kinds = ["full_attention", "sliding_attention", "full_attention", "sliding_attention"];
    let mut config = config(
        "ModernBertModel",
        "modernbert",
        json!({"norm_eps": 1e-5, "local_attention": 8, "global_rope_theta": 1.6e5,
            "local_rope_theta": 1e4, "layer_types": kinds, "hidden_activation": "gelu"}),
    );
    config.as_object_mut().unwrap().remove("num_key_value_heads");
    let mut tiny =
        Tiny::new(config).byte_level(VOCAB).with_bos_and_eos().layers(LAYERS, &layer).tensors(&[
            ("embeddings.tok_embeddings.weight", &[VOCAB, WIDTH]),
            ("embeddings.norm.weight", &[WIDTH]),
            ("final_norm.weight", &[WIDTH]),
        ]);
    for layer in 1..LAYERS {
        tiny = tiny.tensors(&[(&format!("layers.{layer}.attn_norm.weight"), &[WIDTH])]);
    }
    let roles =
        json!({"cls_token": "<s>", "bos_token": "<s>", "sep_token": "</s>", "eos_token": "</s>"});
    tiny.file("tokenizer_config.json", roles.to_string());
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["layer_types"], json!(kinds));
    assert_eq!(exported["local_attention"], 8);
}

fn encoder_config_after_export(
    config: Value,
    names: &[(&str, &[usize])],
    top: &[(&str, &[usize])],
) -> Value {
    let tiny = Tiny::new(config).layers(LAYERS, names).tensors(top);
    tiny.file("vocab.txt", WORD_PIECES);
    assert_round_trip_with_findings(&tiny).config
}

#[test]
pub fn neobert_and_jina_bert_round_trip() {
    let fields = json!({"max_length": 64, "norm_eps": 1e-6, "intermediate_size": 3 * FF / 2,
        "num_key_value_heads": null, "max_position_embeddings": null});
    let layer: [(&str, &[usize]); 6] = [
        ("transformer_encoder.{}.attention_norm.weight", &[WIDTH]),
        ("transformer_encoder.{}.qkv.weight", &[3 * WIDTH, WIDTH]),
        ("transformer_encoder.{}.wo.weight", &[WIDTH, WIDTH]),
        ("transformer_encoder.{}.ffn_norm.weight", &[WIDTH]),
        ("transformer_encoder.{}.ffn.w12.weight", &[2 * FF, WIDTH]),
        ("transformer_encoder.{}.ffn.w3.weight", &[WIDTH, FF]),
    ];
    let top: [(&str, &[usize]); 2] =
        [("encoder.weight", &[VOCAB, WIDTH]), ("layer_norm.weight", &[WIDTH])];
    let exported = encoder_config_after_export(config("NeoBERT", "neobert", fields), &layer, &top);
    assert_eq!(exported["intermediate_size"], 3 * FF / 2);

    let mut layer: Vec<(String, Vec<usize>)> = Vec::new();
    for (name, shape) in [
        ("attention.self.query", vec![WIDTH, WIDTH]),
        ("attention.self.key", vec![WIDTH, WIDTH]),
        ("attention.self.value", vec![WIDTH, WIDTH]),
        ("attention.output.dense", vec![WIDTH, WIDTH]),
        ("attention.output.LayerNorm", vec![WIDTH]),
        ("mlp.wo", vec![WIDTH, FF]),
        ("mlp.layernorm", vec![WIDTH]),
    ] {
        layer.push((format!("encoder.layer.{{}}.{name}.bias"), vec![shape[0]]));
        layer.push((format!("encoder.layer.{{}}.{name}.weight"), shape));
    }
    layer.push(("encoder.layer.{}.mlp.gated_layers.weight".into(), vec![2 * FF, WIDTH]));
    let layer = borrowed(&layer);
    let fields =
        json!({"layer_norm_eps": 1e-12, "type_vocab_size": 2, "num_key_value_heads": null});
    let top: [(&str, &[usize]); 4] = [
        ("embeddings.word_embeddings.weight", &[VOCAB, WIDTH]),
        ("embeddings.token_type_embeddings.weight", &[2, WIDTH]),
        ("embeddings.LayerNorm.weight", &[WIDTH]),
        ("embeddings.LayerNorm.bias", &[WIDTH]),
    ];
    let exported =
        encoder_config_after_export(config("JinaBertModel", "bert", fields), &layer, &top);
    assert_eq!(exported["type_vocab_size"], 2);
}

#[test]
fn training_heads_are_skipped() {
    for class in ["BertForPreTraining", "BertForNextSentencePrediction"] {
        let tiny = bert_with_extra_tensors(class, json!({}))
            .tensors(&[("cls.seq_relationship.weight", &[2, 8])]);
        tiny.file("vocab.txt", WORD_PIECES);
        assert_valid(&tiny.convert().unwrap());
    }
    for class in
        ["RobertaForMaskedLM", "XLMRobertaForMaskedLM", "CamembertForMaskedLM", "CamembertModel"]
    {
        let tiny =
            bert_with_extra_tensors(class, json!({})).tensors(&[("lm_head.dense.weight", &[8, 8])]);
        let gguf = tiny.byte_level(6).convert().unwrap_or_else(|error| panic!("{class}: {error}"));
        assert_valid(&gguf);
        assert_eq!(metadata_value(&gguf, "bert.context_length"), 4, "{class}");
    }
}

const POOLER: [(&str, &[usize]); 2] =
    [("bert.pooler.dense.weight", &[8, 8]), ("bert.pooler.dense.bias", &[8])];

#[test]
fn bert_classifier_uses_the_pooler() {
    let labels = json!({"id2label": {"0": "bad", "1": "good", "2": "neither"}});
    let tiny = bert_with_extra_tensors("BertForSequenceClassification", labels)
        .tensors(&POOLER)
        .tensors(&[("classifier.weight", &[3, 8]), ("classifier.bias", &[3])]);
    tiny.file("vocab.txt", WORD_PIECES);
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "bert.attention.causal"), false);
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
fn bert_pooling_type_comes_from_sentence_transformers() {
    let labels = json!({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}});
    let tiny = bert_with_extra_tensors("BertModel", labels).tensors(&POOLER);
    tiny.file("vocab.txt", WORD_PIECES);
    add_pooling(&tiny, "pooling_mode_cls_token");
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "bert.pooling_type"), 2);
    let model = Gguf::read(&gguf).unwrap();
    assert!(model.metadata().get("bert.classifier.output_labels").is_none());
    assert!(!model.tensors().iter().any(|tensor| tensor.name.starts_with("cls")));
}

#[test]
fn roberta_positions_start_after_the_padding() {
    let tiny = bert_with_extra_tensors(
        "RobertaForSequenceClassification",
        json!({"id2label": {"0": "LABEL_0"}}),
    )
    .tensors(&[
        ("classifier.dense.weight", &[8, 8]),
        ("classifier.dense.bias", &[8]),
        ("classifier.out_proj.weight", &[1, 8]),
        ("classifier.out_proj.bias", &[1]),
    ])
    .byte_level(6);
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "bert.context_length"), 4);
    assert_eq!(metadata_value(&gguf, "tokenizer.ggml.token_type_count"), 2);
    let tiny = bert_with_extra_tensors("RobertaModel", json!({"pad_token_id": 1})).byte_level(6);
    let gguf = tiny.convert().unwrap();
    let stored = tiny.values("roberta.embeddings.position_embeddings.weight");
    assert_eq!(elements(&gguf, "position_embd.weight"), gather_rows(&stored, 8, &[2, 3, 4, 5]));
}

#[test]
fn dense_modules_are_skipped_with_a_note() {
    let tiny = bert_with_extra_tensors("BertModel", json!({}));
    tiny.file("vocab.txt", WORD_PIECES);
    let modules = json!([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]);
    tiny.file("modules.json", modules.to_string());
    std::fs::create_dir(tiny.path().join("2_Dense")).unwrap();
    write_dense_weights(&tiny.path().join("2_Dense"), [4, 8], &[]);
    assert_valid(&tiny.convert().unwrap());
    let checkpoint = Checkpoint::open(tiny.path()).unwrap();
    let notes = hf::plan(tiny.path(), &checkpoint, &hf::HfOptions::default()).unwrap().notes;
    let note =
        "skipped `2_Dense/linear.weight`: the architecture bert has no modules behind the pooling";
    assert!(notes.iter().any(|found| found == note), "{notes:?}");
}
