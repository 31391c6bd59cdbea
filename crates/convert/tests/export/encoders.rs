//! There and back, of encoders, and of models that have an encoder and a decoder.

use std::path::PathBuf;

use safetensors::SafeTensors;
use serde_json::{Value, json};

use crate::Tensors;
use crate::decoder::WIDTH;
use crate::modules::{dense, encoder_fields, gemma};
use crate::there_and_back::{export, there_and_back};
use crate::tiny::{Tiny, assert_sound, elements};

/// What was exported: `config.json`, other JSON files by name, and the elements of tensors.
struct Exported {
    dir: tempfile::TempDir,
}

impl Exported {
    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.dir.path().join(name)).unwrap()).unwrap()
    }

    fn tensors(&self) -> Vec<u8> {
        std::fs::read(self.dir.path().join("model.safetensors")).unwrap()
    }
}

/// The checkpoint goes there and back, and has the very tensors that are exported.
#[track_caller]
fn exported(tiny: &Tiny) -> Exported {
    let gguf = tiny.convert().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let made = tempfile::tempdir().unwrap();
    let path = made.path().join("first.gguf");
    std::fs::write(&path, &gguf).unwrap();
    export(&path, dir.path(), u64::MAX);
    let exported = Exported { dir };
    let stored = std::fs::read(tiny.path().join("model.safetensors")).unwrap();
    let back = exported.tensors();
    let [stored, back] = [&stored, &back].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    for (name, tensor) in back.iter() {
        // The first uploads of BERT have names of TensorFlow.
        let older = name.replace("LayerNorm.weight", "LayerNorm.gamma");
        let older = older.replace("LayerNorm.bias", "LayerNorm.beta");
        let names =
            [name, &*older].map(|name| ["", "bert.", "roberta."].map(|p| format!("{p}{name}")));
        let stored = names.iter().flatten().find_map(|name| stored.tensor(name).ok());
        let stored = stored.unwrap_or_else(|| panic!("{name} is not in the checkpoint"));
        assert_eq!(tensor.shape(), stored.shape(), "{name}");
        if !name.ends_with("position_embeddings.weight") {
            assert!(tensor.data() == stored.data(), "{name}");
        }
    }
    there_and_back(tiny.path(), u64::MAX);
    exported
}

#[test]
fn the_zoo_goes_there_and_back() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder with the reference data");
        return;
    };
    for name in ["bert", "whisper"] {
        there_and_back(&PathBuf::from(&data).join("zoo").join(name), u64::MAX);
    }
}

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
const PIECES: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n";

/// With names that begin with `prefix`.
fn bert(class: &str, prefix: &str, fields: Value) -> Tiny {
    let mut config = json!({
        "architectures": [class], "hidden_size": 8, "num_attention_heads": 2,
        "num_hidden_layers": 2, "intermediate_size": 16, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 6, "type_vocab_size": 2, "vocab_size": 6,
    });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
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

/// Adds the files that say that texts are pooled by this field.
fn pooled(tiny: &Tiny, field: &str) {
    let modules = json!([{"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]);
    tiny.file("modules.json", modules.to_string());
    std::fs::create_dir(tiny.path().join("1_Pooling")).unwrap();
    tiny.file("1_Pooling/config.json", json!({ field: true }).to_string());
}

#[test]
fn bert_keeps_its_pooling() {
    for field in ["pooling_mode_mean_tokens", "pooling_mode_cls_token", "pooling_mode_lasttoken"] {
        let tiny = bert("BertModel", "bert.", json!({}));
        tiny.file("vocab.txt", PIECES);
        pooled(&tiny, field);
        let exported = exported(&tiny);
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
fn bert_keeps_its_classes() {
    let labels = json!({"id2label": {"0": "bad", "1": "good", "2": "neither"}});
    let tiny = bert("BertForSequenceClassification", "bert.", labels.clone()).tensors(&[
        ("bert.pooler.dense.weight", &[8, 8]),
        ("bert.pooler.dense.bias", &[8]),
        ("classifier.weight", &[3, 8]),
        ("classifier.bias", &[3]),
    ]);
    tiny.file("vocab.txt", PIECES);
    let config = exported(&tiny).json("config.json");
    assert_eq!(config["id2label"], labels["id2label"]);
    assert_eq!(config["label2id"]["neither"], 2);
    // Also without the two that programs give to any model.
    let tiny = bert("BertModel", "", json!({}));
    tiny.file("vocab.txt", PIECES);
    assert!(exported(&tiny).json("config.json").get("id2label").is_none());
}

#[test]
fn roberta_has_positions_that_no_token_has() {
    let tiny = bert("RobertaModel", "", json!({"pad_token_id": 1}));
    let special = |id: u32, text: &str| json!({"id": id, "content": text, "special": true});
    let tokenizer = json!({
        "added_tokens": [special(0, "<s>"), special(1, "<pad>"), special(2, "</s>")],
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
        "decoder": { "type": "ByteLevel" },
        "model": { "type": "BPE", "vocab": {"a": 3, "b": 4, "c": 5}, "merges": [] },
    });
    tiny.file("tokenizer.json", tokenizer.to_string());
    let exported = exported(&tiny);
    let config = exported.json("config.json");
    assert_eq!(config["architectures"][0], "RobertaModel");
    assert_eq!(
        (&config["max_position_embeddings"], &config["pad_token_id"]),
        (&json!(6), &json!(1))
    );
    let tensors = exported.tensors();
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
fn roberta_keeps_its_classes() {
    let tiny = bert("RobertaForSequenceClassification", "roberta.", json!({}))
        .tensors(&[
            ("classifier.dense.weight", &[8, 8]),
            ("classifier.dense.bias", &[8]),
            ("classifier.out_proj.weight", &[2, 8]),
            ("classifier.out_proj.bias", &[2]),
        ])
        .byte_level(6);
    let config = exported(&tiny).json("config.json");
    assert_eq!(config["architectures"][0], "RobertaForSequenceClassification");
    assert_eq!(config["id2label"], json!({"0": "LABEL_0", "1": "LABEL_1"}));
}

/// A vocabulary of most probable pieces, six with these special ones.
fn unigram(tiny: &Tiny, specials: &[&str], tokenizer_config: Value) {
    let pieces = [("\u{2581}", -2.0), ("a", -3.0), ("\u{2581}a", -1.5)];
    let vocab: Vec<_> = specials
        .iter()
        .map(|text| (*text, 0.0))
        .chain(pieces)
        .take(6)
        .map(|piece| json!(piece))
        .collect();
    let special = |(id, text)| json!({"id": id, "content": text, "special": true});
    let tokenizer = json!({
        "added_tokens": specials.iter().enumerate().map(special).collect::<Vec<_>>(),
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAECAw=="},
        "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "always"},
        "model": {
            "type": "Unigram",
            "unk_id": specials.iter().position(|text| *text == "<unk>"),
            "vocab": vocab,
        },
    });
    tiny.file("tokenizer.json", tokenizer.to_string());
    tiny.file("tokenizer_config.json", tokenizer_config.to_string());
}

#[test]
fn xlm_roberta_is_told_by_its_vocabulary() {
    let tiny = bert("XLMRobertaModel", "", json!({"pad_token_id": 1}));
    let config = json!({"tokenizer_class": "XLMRobertaTokenizer", "bos_token": "<s>",
        "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"});
    unigram(&tiny, &["<s>", "<pad>", "</s>", "<unk>"], config);
    let config = exported(&tiny).json("config.json");
    assert_eq!(
        (&config["architectures"][0], &config["model_type"]),
        (&json!("XLMRobertaModel"), &json!("xlm-roberta"))
    );
}

#[test]
fn nomic_bert() {
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
    pooled(&tiny, "pooling_mode_mean_tokens");
    let config = exported(&tiny).json("config.json");
    assert_eq!((&config["rope_theta"], &config["intermediate_size"]), (&json!(1000.0), &json!(16)));
}

/// A layer of T5's: the half it is of, the number of its last part, with these matrices besides.
fn t5_layer(half: &str, last: u32, widening: &[&str]) -> Vec<(String, &'static [usize])> {
    let name = |part: u32, rest: &str| format!("{half}.block.0.layer.{part}.{rest}.weight");
    let mut tensors: Vec<(String, &'static [usize])> = vec![
        (name(0, "SelfAttention.relative_attention_bias"), &[4, 2]),
        (name(0, "layer_norm"), &[8]),
        (name(last, "layer_norm"), &[8]),
        (name(last, "DenseReluDense.wo"), &[8, 16]),
        (format!("{half}.final_layer_norm.weight"), &[8]),
    ];
    for matrix in ["q", "k", "v", "o"] {
        tensors.push((name(0, &format!("SelfAttention.{matrix}")), &[8, 8]));
        if half == "decoder" {
            tensors.push((name(1, &format!("EncDecAttention.{matrix}")), &[8, 8]));
        }
    }
    if half == "decoder" {
        tensors.push((name(1, "layer_norm"), &[8]));
    }
    let widening = widening.iter().map(|matrix| name(last, &format!("DenseReluDense.{matrix}")));
    tensors.extend(widening.map(|name| (name, &[16, 8][..])));
    tensors
}

fn t5(class: &str, tensors: Vec<(String, &'static [usize])>) -> Tiny {
    t5_with(class, json!({}), tensors)
}

fn t5_with(class: &str, fields: Value, tensors: Vec<(String, &'static [usize])>) -> Tiny {
    let mut config = json!({
        "architectures": [class], "d_model": 8, "d_kv": 4, "d_ff": 16, "num_heads": 2,
        "num_layers": 1, "num_decoder_layers": 1, "relative_attention_num_buckets": 4,
        "layer_norm_epsilon": 1e-6, "decoder_start_token_id": 0, "vocab_size": 6,
    });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let mut tiny = Tiny::new(config).tensors(&[("shared.weight", &[6, 8])]);
    for (name, shape) in &tensors {
        tiny = tiny.tensors(&[(name, shape)]);
    }
    let config = json!({"tokenizer_class": "T5Tokenizer"});
    unigram(&tiny, &["<pad>", "</s>", "<unk>"], config);
    tiny
}

#[test]
fn t5_widens_in_one_way_or_two() {
    let both = |widening: &[&str]| {
        [t5_layer("encoder", 1, widening), t5_layer("decoder", 2, widening)].concat()
    };
    let first = t5("T5ForConditionalGeneration", both(&["wi"]));
    let config = exported(&first).json("config.json");
    assert_eq!(config["feed_forward_proj"], "relu");
    assert_eq!(config["tie_word_embeddings"], true);
    let later = t5("MT5ForConditionalGeneration", both(&["wi_0", "wi_1"]))
        .tensors(&[("lm_head.weight", &[6, 8])]);
    let config = exported(&later).json("config.json");
    assert_eq!(config["feed_forward_proj"], "gated-gelu");
    // What tells `transformers` not to scale what the decoder gives.
    assert_eq!(config["tie_word_embeddings"], false);
}

#[test]
fn umt5_has_a_bias_in_every_block() {
    let widening = &["wi_0", "wi_1"];
    let layers = [t5_layer("encoder", 1, widening), t5_layer("decoder", 2, widening)].concat();
    let second = layers.iter().filter(|(name, _)| name.contains(".block."));
    let second = second.map(|(name, shape)| (name.replace(".block.0.", ".block.1."), *shape));
    let tensors = layers.iter().cloned().chain(second).collect();
    let fields = json!({"num_layers": 2, "num_decoder_layers": 2});
    let tiny = t5_with("UMT5ForConditionalGeneration", fields, tensors);
    let config = exported(&tiny).json("config.json");
    assert_eq!(config["architectures"][0], "UMT5ForConditionalGeneration");
}

#[test]
fn t5_goes_without_its_decoder() {
    let tiny = t5("T5EncoderModel", t5_layer("encoder", 1, &["wi_0", "wi_1"]));
    let config = exported(&tiny).json("config.json");
    assert_eq!(config["architectures"][0], "T5EncoderModel");
}

/// Numbers of layers, heads and widths differ between encoder and decoder.
#[test]
fn whisper_may_have_a_longer_encoder() {
    let config = json!({
        "architectures": ["WhisperForConditionalGeneration"], "d_model": 8, "encoder_layers": 2,
        "decoder_layers": 3, "encoder_attention_heads": 2, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 16, "decoder_ffn_dim": 12, "num_mel_bins": 5, "vocab_size": 6,
        "max_source_positions": 100, "max_target_positions": 4,
    });
    let layer = |half: &str, width: usize| {
        let name = |rest: &str| format!("model.{half}.layers.{{}}.{rest}");
        let mut tensors: Vec<(String, Vec<usize>)> = vec![
            (name("fc1.weight"), vec![width, 8]),
            (name("fc1.bias"), vec![width]),
            (name("fc2.weight"), vec![8, width]),
            (name("fc2.bias"), vec![8]),
        ];
        let attentions: &[&str] =
            if half == "decoder" { &["self_attn", "encoder_attn"] } else { &["self_attn"] };
        for attention in attentions {
            for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                tensors.push((name(&format!("{attention}.{part}.weight")), vec![8, 8]));
                if part != "k_proj" {
                    tensors.push((name(&format!("{attention}.{part}.bias")), vec![8]));
                }
            }
        }
        for norm in attentions.iter().copied().chain(["final"]) {
            for suffix in ["weight", "bias"] {
                tensors.push((name(&format!("{norm}_layer_norm.{suffix}")), vec![8]));
            }
        }
        tensors
    };
    let mut tiny = Tiny::new(config).byte_level(6).tensors(&[
        ("model.encoder.conv1.weight", &[8, 5, 3]),
        ("model.encoder.conv1.bias", &[8]),
        ("model.encoder.conv2.weight", &[8, 8, 3]),
        ("model.encoder.conv2.bias", &[8]),
        ("model.encoder.embed_positions.weight", &[100, 8]),
        ("model.encoder.layer_norm.weight", &[8]),
        ("model.encoder.layer_norm.bias", &[8]),
        ("model.decoder.embed_tokens.weight", &[6, 8]),
        ("model.decoder.embed_positions.weight", &[4, 8]),
        ("model.decoder.layer_norm.weight", &[8]),
        ("model.decoder.layer_norm.bias", &[8]),
    ]);
    for (half, count, width) in [("encoder", 2, 16), ("decoder", 3, 12)] {
        for (name, shape) in layer(half, width) {
            tiny = tiny.layers(count, &[(&name, &shape)]);
        }
    }
    let exported = exported(&tiny);
    assert_eq!(exported.json("config.json")["decoder_layers"], 3);
    assert_sound(&tiny.convert().unwrap());
    let features = exported.json("preprocessor_config.json");
    assert_eq!((&features["feature_size"], &features["chunk_length"]), (&json!(5), &json!(2)));
}

#[test]
fn gemma_keeps_the_matrices_behind_its_pooling() {
    let modules = [
        ("1_Pooling", "Pooling", json!({"pooling_mode_mean_tokens": true})),
        ("2_Dense", "Dense", dense(WIDTH, 80, json!({}))),
        ("3_Dense", "Dense", dense(80, WIDTH, json!({}))),
    ];
    let tiny = gemma(encoder_fields(), &modules);
    let exported = exported(&tiny);
    let config = exported.json("config.json");
    assert_eq!(config["architectures"][0], "Gemma3TextModel");
    assert_eq!(config["use_bidirectional_attention"], true);
    for (number, (folder, _, fields)) in modules.iter().enumerate().skip(1) {
        assert_eq!(exported.json(&format!("{folder}/config.json")), *fields);
        let of_module = &exported.json("modules.json")[number + 1];
        assert_eq!(of_module["path"], **folder);
        assert_eq!(of_module["type"], "sentence_transformers.models.Dense");
        let [there, back] = [tiny.path(), exported.dir.path()].map(|dir| {
            let bytes = std::fs::read(dir.join(folder).join("model.safetensors")).unwrap();
            let tensors = SafeTensors::deserialize(&bytes).unwrap();
            let tensor = tensors.tensor("linear.weight").unwrap();
            (tensor.shape().to_vec(), tensor.data().to_vec())
        });
        assert!(there == back, "{folder}");
    }
    let mut fields = encoder_fields();
    fields["use_bidirectional_attention"] = false.into();
    let back = self::exported(&gemma(fields, &modules)).json("config.json");
    assert_eq!(back["use_bidirectional_attention"], false);
}
