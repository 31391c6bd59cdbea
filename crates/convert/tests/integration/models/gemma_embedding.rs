//! EmbeddingGemma.

use gguf::Gguf;
use safetensors::SafeTensors;
use serde_json::{Value, json};

use crate::fixtures::decoder::WIDTH;
use crate::fixtures::round_trip::assert_encoder_round_trip;
use crate::fixtures::sentence_transformers::{dense, embedding_fields, embedding_gemma};
use crate::fixtures::{assert_valid, elements, metadata_value};

#[test]
pub fn dense_modules_round_trip() {
    let modules = [
        ("1_Pooling", "Pooling", json!({"pooling_mode_mean_tokens": true})),
        ("2_Dense", "Dense", dense(WIDTH, 80, json!({}))),
        ("3_Dense", "Dense", dense(80, WIDTH, json!({}))),
    ];
    let tiny = embedding_gemma(embedding_fields(), &modules);
    let exported = assert_encoder_round_trip(&tiny);
    let config = exported.json("config.json");
    assert_eq!(config["architectures"][0], "Gemma3TextModel");
    assert_eq!(config["use_bidirectional_attention"], true);
    for (number, (folder, _, fields)) in modules.iter().enumerate().skip(1) {
        assert_eq!(exported.json(&format!("{folder}/config.json")), *fields);
        let module = &exported.json("modules.json")[number + 1];
        assert_eq!(module["path"], **folder);
        assert_eq!(module["type"], "sentence_transformers.models.Dense");
        let [stored, exported] = [tiny.path(), exported.path()].map(|dir| {
            let bytes = std::fs::read(dir.join(folder).join("model.safetensors")).unwrap();
            let tensors = SafeTensors::deserialize(&bytes).unwrap();
            let tensor = tensors.tensor("linear.weight").unwrap();
            (tensor.shape().to_vec(), tensor.data().to_vec())
        });
        assert!(stored == exported, "{folder}");
    }
    let mut fields = embedding_fields();
    fields["use_bidirectional_attention"] = false.into();
    let exported =
        assert_encoder_round_trip(&embedding_gemma(fields, &modules)).json("config.json");
    assert_eq!(exported["use_bidirectional_attention"], false);
}

#[test]
fn dense_modules_become_tensors() {
    let modules = [
        ("1_Pooling", "Pooling", json!({"pooling_mode_mean_tokens": true})),
        ("2_Dense", "Dense", dense(WIDTH, 80, json!({}))),
        ("3_Dense", "Dense", dense(80, WIDTH, json!({}))),
    ];
    let gguf = embedding_gemma(embedding_fields(), &modules).convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "general.architecture"), "gemma-embedding");
    let number = |name: &str| metadata_value(&gguf, &format!("gemma-embedding.{name}"));
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
fn causal_attention_is_recorded() {
    let mut fields = embedding_fields();
    fields.as_object_mut().unwrap().remove("use_bidirectional_attention");
    let gguf = embedding_gemma(fields, &[]).convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "gemma-embedding.attention.causal"), true);
}

#[test]
fn unsupported_dense_modules_fail() {
    let error = |folder: &str, others: Value| {
        let modules = [(folder, "Dense", dense(WIDTH, 80, others))];
        embedding_gemma(embedding_fields(), &modules).convert().unwrap_err().to_string()
    };
    let tanh = error("2_Dense", json!({"activation_function": "torch.nn.modules.activation.Tanh"}));
    assert!(tanh.contains("has the activation torch.nn.modules.activation.Tanh"), "{tanh}");
    let bias = error("2_Dense", json!({"bias": true}));
    assert!(bias.contains("2_Dense/config.json") && bias.contains("has a bias"), "{bias}");
    let place = error("4_Dense", json!({}));
    assert!(place.contains("is a dense layer that GGUF cannot store"), "{place}");
    let tiny =
        embedding_gemma(embedding_fields(), &[("2_Dense", "Dense", dense(WIDTH, 80, json!({})))]);
    std::fs::remove_file(tiny.path().join("2_Dense/model.safetensors")).unwrap();
    let lost = tiny.convert().unwrap_err().to_string();
    assert!(lost.contains("2_Dense/model.safetensors"), "{lost}");
}
