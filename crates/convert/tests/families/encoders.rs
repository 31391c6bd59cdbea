//! Encoders, with and without a decoder.

use gguf::Gguf;
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use serde_json::{Value, json};

use crate::decoder::WIDTH;
use crate::modules::{dense, encoder_fields, gemma, weights};
use crate::tiny::{Tiny, assert_sound, elements};
use crate::{key, picked};

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

pub fn bert(class: &str, fields: Value) -> Tiny {
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

pub const PIECES: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n";

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
    let own = json!({
        "architectures": ["NomicBertModel"], "n_embd": 8, "n_head": 2, "n_layer": 1, "n_inner": 16,
        "n_positions": 8192, "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000,
        "type_vocab_size": 2, "vocab_size": 6, "causal": false, "prenorm": false,
    });
    // As transformers writes it.
    let newer = json!({
        "architectures": ["NomicBertModel"], "hidden_size": 8, "num_attention_heads": 2,
        "num_hidden_layers": 1, "intermediate_size": 16, "max_position_embeddings": 8192,
        "layer_norm_eps": 1e-12, "rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"},
        "type_vocab_size": 2, "vocab_size": 6,
    });
    nomic_bert(own);
    nomic_bert(newer);
}

fn nomic_bert(config: Value) {
    let tiny = Tiny::new(config).tensors(&[
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

pub const T5_DECODER: [(&str, &[usize]); 17] = [
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
];

pub fn t5(class: &str) -> Tiny {
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
    let tiny = t5("T5ForConditionalGeneration")
        .tensors(&T5_DECODER)
        .tensors(&[("lm_head.weight", &[6, 8])]);
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
fn gemma_as_an_encoder_has_the_matrices_behind_its_pooling() {
    let modules = [
        ("1_Pooling", "Pooling", json!({"pooling_mode_mean_tokens": true})),
        ("2_Dense", "Dense", dense(WIDTH, 80, json!({}))),
        ("3_Dense", "Dense", dense(80, WIDTH, json!({}))),
    ];
    let gguf = gemma(encoder_fields(), &modules).convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "general.architecture"), "gemma-embedding");
    let number = |name: &str| key(&gguf, &format!("gemma-embedding.{name}"));
    assert_eq!(number("pooling_type"), 1);
    assert_eq!(number("attention.sliding_window"), 16);
    assert_eq!([number("dense_2_feat_in"), number("dense_2_feat_out")], [json!(WIDTH), json!(80)]);
    assert_eq!([number("dense_3_feat_in"), number("dense_3_feat_out")], [json!(80), json!(WIDTH)]);
    let numbers: Vec<f32> = (0..80 * WIDTH).map(|i| i as f32).collect();
    assert_eq!(elements(&gguf, "dense_2.weight"), numbers);
    assert_eq!(elements(&gguf, "dense_3.weight"), numbers);
    let model = Gguf::read(&gguf).unwrap();
    assert!(model.metadata().get("gemma-embedding.attention.causal").is_none());
    let first = &model.tensors()[0].name;
    assert_eq!(&**first, "dense_2.weight", "where llama.cpp's converter has it");
}

#[test]
fn gemma_whose_tokens_do_not_see_what_follows_says_so() {
    let mut fields = encoder_fields();
    fields.as_object_mut().unwrap().remove("use_bidirectional_attention");
    let gguf = gemma(fields, &[]).convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "gemma-embedding.attention.causal"), true);
}

#[test]
fn modules_that_no_file_can_hold_are_refused() {
    let fault = |folder: &str, others: Value| {
        let modules = [(folder, "Dense", dense(WIDTH, 80, others))];
        gemma(encoder_fields(), &modules).convert().unwrap_err().to_string()
    };
    let tanh = fault("2_Dense", json!({"activation_function": "torch.nn.modules.activation.Tanh"}));
    assert!(tanh.contains("asks for torch.nn.modules.activation.Tanh behind the matrix"), "{tanh}");
    let bias = fault("2_Dense", json!({"bias": true}));
    assert!(bias.contains("2_Dense/config.json") && bias.contains("asks for a bias"), "{bias}");
    let place = fault("4_Dense", json!({}));
    assert!(place.contains("is of a matrix that files have no place for"), "{place}");
    let tiny = gemma(encoder_fields(), &[("2_Dense", "Dense", dense(WIDTH, 80, json!({})))]);
    std::fs::remove_file(tiny.path().join("2_Dense/model.safetensors")).unwrap();
    let lost = tiny.convert().unwrap_err().to_string();
    assert!(lost.contains("2_Dense/model.safetensors"), "{lost}");
}

#[test]
fn what_stands_behind_another_model_is_left_out_and_said() {
    let tiny = bert("BertModel", json!({}));
    tiny.file("vocab.txt", PIECES);
    let modules = json!([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]);
    tiny.file("modules.json", modules.to_string());
    std::fs::create_dir(tiny.path().join("2_Dense")).unwrap();
    weights(&tiny.path().join("2_Dense"), [4, 8], &[]);
    assert_sound(&tiny.convert().unwrap());
    let checkpoint = Checkpoint::open(tiny.path()).unwrap();
    let notes = hf::plan(tiny.path(), &checkpoint, &hf::Options::default()).unwrap().notes;
    let note = "left out `2_Dense/linear.weight`: bert files have no place for what stands behind \
                the pooling";
    assert!(notes.iter().any(|found| found == note), "{notes:?}");
}
