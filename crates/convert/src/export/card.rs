//! `README.md` and `generation_config.json` from the `general.*` keys.

use gguf::Metadata;
use gguf_models::token;
use serde_json::{Map, Value};

use super::{File, json_file};
use crate::model_card;

/// Returns the model card, and the recommended sampler settings if there are any.
pub(super) fn files(metadata: &Metadata) -> Vec<File> {
    let mut files = Vec::new();
    let card = model_card::model_card_entries(metadata);
    if !card.is_empty() {
        // JSON values are valid YAML.
        let lines = card.iter().map(|(key, value)| format!("{key}: {value}\n"));
        let text = format!("---\n{}---\n", lines.collect::<String>());
        files.push(File { name: "README.md", bytes: text.into_bytes() });
    }
    let mut generation: Map<String, Value> = model_card::generation_config(metadata);
    for role in ["bos", "eos", "pad"] {
        if let Some(id) = token::id_key(role).and_then(|key| metadata.u64(key)) {
            generation.insert(format!("{role}_token_id"), id.into());
        }
    }
    if !generation.is_empty() {
        files.push(json_file("generation_config.json", &generation.into()));
    }
    files
}
