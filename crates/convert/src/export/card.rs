//! `README.md` and `generation_config.json` from the `general.*` keys.

use gguf::Metadata;
use gguf_models::token;
use serde_json::{Map, Value};

use super::{File, json_file};
use crate::general;

/// The model card, and the recommended sampler settings if there are any.
pub(super) fn files(metadata: &Metadata) -> Vec<File> {
    let mut files = Vec::new();
    let card = general::card_of(metadata);
    if !card.is_empty() {
        // JSON is YAML, so every value stands as it is.
        let lines = card.iter().map(|(key, value)| format!("{key}: {value}\n"));
        let text = format!("---\n{}---\n", lines.collect::<String>());
        files.push(File { name: "README.md", bytes: text.into_bytes() });
    }
    let mut generation: Map<String, Value> = general::sampling_of(metadata);
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
