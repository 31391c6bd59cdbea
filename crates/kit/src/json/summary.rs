//! Summary of a model: `inspect/2`.

use serde_json::{Map, Value as Json, json};

use crate::summary::{SpecialToken, Summary, Vocabulary};

/// Serializes a summary: `inspect/2` without keys and tensors. `file` is the name that the user gave. A `diffable`
/// summary has no properties of files, so that it is equal for files with equal content.
pub fn summary(summary: &Summary, file: &str, diffable: bool) -> Json {
    let (layers, vocabulary) = (&summary.layers, &summary.vocabulary);
    let types: Map<_, _> = summary
        .types
        .iter()
        .map(|(ty, (n, bytes))| (ty.to_string(), json!({ "tensors": n, "bytes": bytes })))
        .collect();
    let mut json = json!({
        "file": file,
        "version": summary.version,
        "files": summary.files,
        "file_bytes": summary.file_bytes,
        "architecture": summary.architecture,
        "kind": summary.kind.as_deref().unwrap_or("model"),
        "name": summary.name,
        "parameters": summary.parameters,
        "data_bytes": summary.data_bytes,
        "file_type": summary.file_type,
        "bits_per_weight": summary.bits_per_weight(),
        "context_length": layers.context_length,
        "block_count": layers.block_count,
        "embedding_length": layers.embedding_length,
        "feed_forward_length": layers.feed_forward_length,
        "head_count": layers.heads,
        "head_count_kv": layers.heads_kv,
        "key_length": layers.key_length,
        "value_length": layers.value_length,
        "sliding_window": layers.sliding_window,
        "experts": layers.experts,
        "rope": layers.rope,
        "tokenizer": {
            "model": vocabulary.model,
            "pre": vocabulary.pre,
            "tokens": vocabulary.tokens,
            "special": special_tokens(vocabulary),
        },
        "chat_template": vocabulary.template,
        "origin": summary.origin,
        "tensor_count": summary.tensors,
        "tensor_types": types,
    });
    if diffable && let Some(json) = json.as_object_mut() {
        for name in ["file", "files", "file_bytes", "version"] {
            json.shift_remove(name);
        }
    }
    json
}

/// Serializes the special tokens by their role.
pub fn special_tokens(vocabulary: &Vocabulary) -> Map<String, Json> {
    let token = |token: &SpecialToken| {
        let json = json!({ "id": token.id, "text": token.text, "added": token.added });
        (token.role.to_owned(), json)
    };
    vocabulary.special.iter().map(token).collect()
}
