//! Comparison with llama.cpp's conversion of the reference checkpoints.

use std::fs;
use std::path::Path;

use gguf::Value as Gguf;
use gguf_convert::vocab::{VocabularyOptions, load};
use gguf_models::convert::VocabularyKind;
use serde_json::{Value, json};

use super::reference_checkpoints;

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns a value as the manifests write it: its types, then its content.
fn as_manifest(value: &Gguf) -> (Vec<String>, Value) {
    let scalar = |value: &Gguf| match value {
        Gguf::Bool(v) => json!(v),
        Gguf::F32(v) => json!(f64::from(*v)),
        Gguf::String(_) => json!(value.as_str().unwrap()),
        _ => json!(value.to_i64().unwrap()),
    };
    let name = value.value_type().name().to_owned();
    match value.as_array() {
        None => (vec![name], scalar(value)),
        Some(array) => (
            vec![name, array.element_type().name().to_owned()],
            array.iter().map(|value| scalar(&value)).collect(),
        ),
    }
}

#[test]
fn vocabularies_equal_llama_cpps_conversion() {
    let Some(zoo) = reference_checkpoints() else { return };
    // The manifests have the preferred pre-tokenizer name of each model.
    for (folder, kind, hints) in [
        ("llama", VocabularyKind::Llama, &[][..]),
        ("mistral", VocabularyKind::Llama, &[]),
        ("mixtral", VocabularyKind::Llama, &[]),
        ("mixed-llama", VocabularyKind::Llama, &[]),
        ("gptq-llama", VocabularyKind::Llama, &[]),
        ("fp8-llama", VocabularyKind::Llama, &[]),
        ("phi3", VocabularyKind::SentencePieceElseBpe, &[]),
        ("qwen2", VocabularyKind::SentencePieceElseBpe, &["qwen2"]),
        ("qwen3", VocabularyKind::SentencePieceElseBpe, &["qwen2"]),
        ("qwen3moe", VocabularyKind::SentencePieceElseBpe, &["qwen2"]),
        ("gpt2", VocabularyKind::Bpe, &[]),
        ("gpt_neox", VocabularyKind::Bpe, &[]),
        ("mamba", VocabularyKind::Bpe, &[]),
        ("mpt", VocabularyKind::Bpe, &["mpt"]),
        ("bloom", VocabularyKind::Bpe, &[]),
        ("falcon", VocabularyKind::Bpe, &[]),
        ("stablelm", VocabularyKind::Bpe, &["stablelm2"]),
        ("olmo2", VocabularyKind::Bpe, &["dbrx"]),
    ] {
        let dir = zoo.join(folder);
        let vocab_size = read_json(&dir.join("config.json"))["vocab_size"].as_u64();
        let found = load(
            &dir,
            kind,
            &VocabularyOptions { pre: None, hints, vocab_size, architecture: None },
        )
        .unwrap();
        let manifest = read_json(&dir.join("official.f32.manifest.json"));
        let wanted: Vec<_> = manifest["kv"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| key.starts_with("tokenizer."))
            .collect();
        let keys: Vec<_> = found.metadata.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, wanted.iter().map(|(key, _)| *key).collect::<Vec<_>>(), "{folder}");
        for ((key, value), (_, wanted)) in found.metadata.iter().zip(&wanted) {
            let (types, content) = as_manifest(value);
            assert_eq!(json!(types), wanted["type"], "{folder}: {key}");
            assert_eq!(content, wanted["value"], "{folder}: {key}");
        }
        assert_eq!(Some(found.len as u64), vocab_size, "{folder}");
    }
}

/// Without a hint, the name of an equivalent pre-tokenizer is chosen.
#[test]
fn recognizes_every_byte_level_pre_tokenizer() {
    let Some(zoo) = reference_checkpoints() else { return };
    for (folder, pre) in [
        ("gpt2", "gpt-2"),
        ("gpt_neox", "gpt-2"),
        ("gptj", "gpt-2"),
        ("mamba", "gpt-2"),
        ("rwkv", "gpt-2"),
        ("whisper", "gpt-2"),
        ("mpt", "gpt-2"), // the same as `mpt` for runtimes
        ("qwen2", "qwen2"),
        ("qwen3", "qwen2"),
        ("qwen3moe", "qwen2"),
        ("stablelm", "qwen2"), // `stablelm2` differs in how text is cleaned when put together
        ("olmo2", "dbrx"),
        ("bloom", "bloom"),
        ("falcon", "falcon"),
    ] {
        let found =
            load(&zoo.join(folder), VocabularyKind::Bpe, &VocabularyOptions::default()).unwrap();
        assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some(pre), "{folder}");
    }
}

#[test]
fn space_prefix_key_comes_first() {
    let Some(zoo) = reference_checkpoints() else { return };
    let dir = zoo.join("../tiny-kjv-llama/Tiny-KJV-Llama-4M");
    let options = VocabularyOptions { vocab_size: Some(2048), ..VocabularyOptions::default() };
    let found = load(&dir, VocabularyKind::Llama, &options).unwrap();
    let keys: Vec<_> = found.metadata.iter().map(|(key, _)| key).collect();
    assert_eq!(
        keys,
        [
            "tokenizer.ggml.add_space_prefix",
            "tokenizer.ggml.model",
            "tokenizer.ggml.pre",
            "tokenizer.ggml.tokens",
            "tokenizer.ggml.scores",
            "tokenizer.ggml.token_type",
            "tokenizer.ggml.bos_token_id",
            "tokenizer.ggml.eos_token_id",
            "tokenizer.ggml.add_bos_token",
            "tokenizer.ggml.add_eos_token",
        ]
    );
    assert_eq!(found.len, 2048);
}
