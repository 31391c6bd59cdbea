//! `config.json` from the keys of a GGUF.

use std::path::Path;

use gguf::{Array, Error, Finding, Metadata};
use gguf_checkpoint::config::Config;
use gguf_models::convert::{Converter, Exported};
use gguf_store::Model;
use serde_json::{Map, Value, json};

use super::rope;
use super::value::value;

/// Fields of most models: key under the architecture's name, field.
const NUMBERS: [(&str, &str); 13] = [
    ("block_count", "num_hidden_layers"),
    ("context_length", "max_position_embeddings"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.key_length", "head_dim"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("rope.freq_base", "rope_theta"),
    ("expert_count", "num_experts"),
    ("expert_used_count", "num_experts_per_tok"),
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("attention.sliding_window", "sliding_window"),
];

/// Flags of biases: name of a bias tensor, field.
const BIASES: [(&str, &str); 2] =
    [("blk.0.attn_q.bias", "attention_bias"), ("blk.0.ffn_gate.bias", "mlp_bias")];

/// Returns the configuration of `model`, without the fields of the tokenizer.
///
/// # Errors
/// If a RoPE scaling tensor cannot be read.
pub(super) fn configuration(
    model: &Model,
    converter: &'static dyn Converter,
    exported: &Exported,
) -> Result<Value, Error> {
    let metadata = model.metadata();
    let architecture = converter.architecture();
    let mut config = Map::new();
    config.insert("architectures".into(), json!([exported.class]));
    config.insert("model_type".into(), exported.model_type.into());
    let has_own = |key: &str| exported.fields.iter().any(|(own, _)| *own == key);
    let is_usual = |key: &str| !has_own(key) && !exported.without.contains(&key);
    let usual = NUMBERS.iter().filter(|(key, _)| is_usual(key));
    for (key, field) in usual.chain(&exported.fields) {
        if let Some(value) = value(metadata, &format!("{architecture}.{key}")) {
            config.insert((*field).into(), value);
        }
    }
    let index = model.index();
    let tokens = metadata.array("tokenizer.ggml.tokens").map(Array::len);
    let rows = || index.get("token_embd.weight")?.info.shape.get(1).copied();
    if let Some(tokens) = tokens.or_else(rows) {
        config.insert("vocab_size".into(), tokens.into());
    }
    config.insert("tie_word_embeddings".into(), (!index.contains_key("output.weight")).into());
    for (_, field) in BIASES.iter().filter(|(bias, _)| index.contains_key(*bias)) {
        config.insert((*field).into(), true.into());
    }
    let mut scaling = rope::scaling(model, architecture, is_usual, &config)?;
    if !scaling.is_empty() {
        scaling.extend(exported.scaling.clone());
        config.insert("rope_scaling".into(), scaling.into());
    }
    config.extend(exported.config.clone());
    Ok(config.into())
}

/// Turns an error about the exported configuration into one about the model's keys.
pub(super) fn as_model_error(error: Error, config: &Path, model: &Model) -> Error {
    match error {
        Error::InFile { path, finding } if path == config => {
            let what =
                format!("its keys do not form a complete configuration: {}", finding.message);
            let finding = Finding::error("export-incomplete", what).help(
                "`gguf check` lists the missing keys; or export the tensors under their \
                 GGUF names: --to safetensors --keep-names",
            );
            let error = Error::from(finding);
            match model.paths().next() {
                Some(path) => error.in_file(path),
                None => error,
            }
        }
        other => other,
    }
}

/// Returns notes about hyper-parameters that a conversion of the exported configuration does not restore.
///
/// # Errors
/// If the configuration lacks a field that the conversion requires.
pub(super) fn not_restored(
    metadata: &Metadata,
    converter: &'static dyn Converter,
    config: &Config,
) -> Result<Vec<String>, Error> {
    let mut restored = Metadata::default();
    let file_type = metadata.u64("general.file_type").unwrap_or_default() as u32;
    converter.leading_metadata(config, &mut restored)?;
    converter.metadata(config, file_type, &mut restored)?;
    converter.trailing_metadata(config, &mut restored)?;
    let prefix = format!("{}.", converter.architecture());
    let of_family = |key: &str| key.starts_with(&prefix);
    let lost =
        metadata.iter().filter(|(key, value)| of_family(key) && restored.get(key) != Some(value));
    let added = restored.iter().filter(|(key, _)| of_family(key) && metadata.get(key).is_none());
    let lost = lost.map(|(key, _)| match restored.get(key) {
        Some(_) => format!("converting the export changes `{key}`"),
        None => format!("converting the export loses `{key}`"),
    });
    let added = added.map(|(key, _)| format!("converting the export adds `{key}`"));
    Ok(lost.chain(added).collect())
}
