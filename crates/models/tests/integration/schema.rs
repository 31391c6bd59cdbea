//! The tables of the schema: that they are consistent, and printed as they are.

use std::path::Path;

use gguf::Metadata;
use gguf_models::schema::{
    self, Expected, Presence, Requirement, SECTIONS, SYMBOLS, Scope, Source, architectures,
};

#[test]
fn document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metadata.md");
    let document = schema::document();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &document).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == document, "docs/metadata.md is not current: run this test with UPDATE=1");
}

#[test]
fn names_resolve() {
    let name = |key: &str| schema::key(key).map(|key| key.name);
    assert_eq!(name("general.name"), Some("general.name"));
    assert_eq!(name("llama.block_count"), Some("{arch}.block_count"));
    assert_eq!(name("command-r.logit_scale"), Some("{arch}.logit_scale"));
    assert_eq!(name("general.block_count"), None);
    assert_eq!(name("general.base_model.10.url"), Some("general.base_model.{id}.url"));
    assert_eq!(name("general.base_model.x.url"), None);
    assert_eq!(name("tokenizer.chat_template"), Some("tokenizer.chat_template"));
    assert_eq!(name("tokenizer.chat_template.tool_use"), Some("tokenizer.chat_template.{name}"));
    assert_eq!(name("{arch}.block_count"), Some("{arch}.block_count"));
    assert_eq!(name("block_count"), None);
    assert_eq!(name(""), None);
}

#[test]
fn near_misses_are_found() {
    let nearest = |key: &str| schema::nearest_key(key);
    assert_eq!(nearest("llama.blok_count").as_deref(), Some("llama.block_count"));
    assert_eq!(nearest("tokenizer.ggml.bos_token").as_deref(), None, "three letters are too many");
    assert_eq!(nearest("general.licence").as_deref(), Some("general.license"));
    assert_eq!(nearest("general.name"), None);
    assert_eq!(nearest("mine.own_key"), None);
}

#[test]
fn keys_are_unique_and_replacements_exist() {
    let keys: Vec<_> = SECTIONS.iter().flat_map(|section| section.keys).collect();
    for (i, key) in keys.iter().enumerate() {
        assert!(keys[..i].iter().all(|other| other.name != key.name), "{} twice", key.name);
        assert!(key.meaning.ends_with('.'), "{}", key.name);
        if let Requirement::Deprecated(instead) = key.requirement {
            assert!(instead.is_empty() || keys.iter().any(|key| key.name == instead));
        }
    }
}

#[test]
fn symbols_lead_to_standard_keys() {
    for symbol in SYMBOLS {
        if let Source::Key(key) | Source::KeyOr(key, _) | Source::Length(key, _) = symbol.source {
            assert!(schema::key(key).is_some(), "{}: {key}", symbol.name);
        }
    }
}

/// Metadata in which every symbol has a value.
fn full(arch: &str) -> Metadata {
    let mut metadata = Metadata::new();
    for key in SYMBOLS.iter().filter_map(|symbol| symbol.source.key()) {
        let value = if key.ends_with(".leading_dense_block_count") { 1u32 } else { 2 };
        metadata.set(key.replace("{arch}", arch), value);
    }
    metadata.set(format!("{arch}.block_count"), 4u32);
    metadata.set(format!("{arch}.attention.key_length_mla"), 4u32);
    metadata.remove("tokenizer.ggml.tokens");
    metadata.remove(&format!("{arch}.classifier.output_labels"));
    metadata
}

#[test]
fn every_shape_has_a_value() {
    fn shapes(expected: &Expected) {
        match expected {
            Expected::Tensor { name, shape, .. } => {
                assert!(shape.iter().all(Option::is_some), "{name}: {shape:?}");
            }
            Expected::OneOf(options) => options.iter().flatten().for_each(shapes),
        }
    }
    for architecture in architectures() {
        let metadata = full(architecture.name);
        let expected: Vec<_> = architecture.tensors(&metadata).collect();
        expected.iter().for_each(shapes);
        assert!(!expected.is_empty());
        for key in architecture.required.concat().iter().chain(&architecture.optional.concat()) {
            let key = format!("{}.{key}", architecture.name);
            assert!(schema::key(&key).is_some(), "{key}");
        }
    }
    let scope = Scope::new(&full("x"), "x");
    for symbol in SYMBOLS {
        assert!(scope.value(symbol.name, None).is_some(), "{}", symbol.name);
    }
}

#[test]
fn a_model_claims_layers_lazily() {
    let mut metadata = full("llama");
    metadata.set("llama.block_count", u64::MAX);
    let llama = schema::architecture("llama").unwrap();
    let needed = |expected: &Expected| {
        matches!(expected, Expected::Tensor { presence: Presence::Required, .. })
    };
    assert_eq!(llama.tensors(&metadata).filter(needed).take(1000).count(), 1000);
    assert_eq!(llama.tensors(&Metadata::new()).count(), 6, "without metadata, no layers");
}
