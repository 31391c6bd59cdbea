//! What a model is: `inspect/1`.

use serde_json::{Map, Value as Json, json};

use crate::summary::{Origin, PerLayer, SpecialToken, Summary, Vocabulary};

/// What a person wants to know of a model first: `inspect/1` without keys and tensors. `file` is what the user
/// called it; a `diffable` one has nothing of files, and is the same for all files of the same content.
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
        "feed_forward_length": per_layer(layers.feed_forward_length),
        "head_count": per_layer(layers.heads),
        "head_count_kv": per_layer(layers.heads_kv),
        "key_length": layers.key_length,
        "value_length": layers.value_length,
        "sliding_window": layers.sliding_window,
        "experts": layers.experts.as_ref().map(|experts| json!({
            "count": experts.count,
            "used": per_layer(experts.used),
            "shared": experts.shared,
        })),
        "rope": layers.rope.as_ref().map(|rope| json!({
            "base": rope.base,
            "dimensions": rope.dimensions,
            "scaling": rope.scaling,
            "factor": rope.factor,
            "original_context_length": rope.original_context_length,
        })),
        "tokenizer": {
            "model": vocabulary.model,
            "pre": vocabulary.pre,
            "tokens": vocabulary.tokens,
            "special": special_tokens(vocabulary),
        },
        "chat_template": vocabulary.template.as_ref().map(|template| json!({
            "bytes": template.bytes,
            "others": template.others,
        })),
        "origin": origin_json(&summary.origin),
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

fn per_layer(number: Option<PerLayer>) -> Json {
    match number {
        None => Json::Null,
        Some(PerLayer { least, most }) if least == most => json!(most),
        Some(PerLayer { least, most }) => json!({ "least": least, "most": most }),
    }
}

fn origin_json(origin: &Origin) -> Json {
    let base_models = origin.base_models.iter().map(|base| {
        json!({ "name": base.name, "organization": base.organization, "address": base.address })
    });
    json!({
        "description": origin.description,
        "licence": origin.licence,
        "licence_link": origin.licence_link,
        "made_by": origin.maker,
        "quantized_by": origin.quantized_by,
        "page": origin.page,
        "base_models": base_models.collect::<Json>(),
        "languages": origin.languages,
        "tags": origin.tags,
        "imatrix": origin.imatrix.as_ref().map(|imatrix| json!({
            "file": imatrix.file,
            "dataset": imatrix.dataset,
            "tensors": imatrix.entries,
            "chunks": imatrix.chunks,
        })),
        "provenance": origin.provenance.as_ref().map(|provenance| json!({
            "tool": provenance.tool,
            "source": provenance.source,
            "settings": provenance.settings,
        })),
    })
}

/// Tokens with a role, by its name.
pub fn special_tokens(vocabulary: &Vocabulary) -> Map<String, Json> {
    let token = |token: &SpecialToken| {
        let json = json!({ "id": token.id, "text": token.text, "added": token.added });
        (token.role.to_owned(), json)
    };
    vocabulary.special.iter().map(token).collect()
}
