//! Reports as JSON documents of `docs/json/`, for the command line (`--json`) and the viewer.

mod diff;
mod graph;
mod summary;
mod value;

use gguf::Value;
pub use gguf_checkpoint::json::described as fault;
use serde_json::{Map, Value as Json, json};

pub use diff::{diff, figures, key_change};
pub use gguf_check::json::{REPLACE, error, finding, whose};
pub use graph::graph;
pub use summary::{special_tokens, summary};
pub use value::{SHORT_ARRAY, typed_value, value};

use crate::edit::{KeyChange, TensorChange};
use crate::memory;

/// Adds the schema, such as `inspect/2`, as the first field of a document.
pub fn with_schema(schema: &str, document: Json) -> Json {
    let mut all = Map::new();
    all.insert("schema".to_owned(), format!("gguf-kit/{schema}").into());
    match document {
        Json::Object(fields) => all.extend(fields),
        other => drop(all.insert("value".to_owned(), other)),
    }
    Json::Object(all)
}

/// Serializes the changes of keys: `keys` of `edit/3`.
pub fn edited_keys(changes: &[KeyChange]) -> Json {
    let shown = |value: &Option<Value>| value.as_ref().map(|value| typed_value(value, SHORT_ARRAY));
    let change = |change: &KeyChange| json!({ "key": change.key, "a": shown(&change.before), "b": shown(&change.after) });
    changes.iter().map(change).collect()
}

/// Serializes the changes of tensors: `tensors` of `edit/3`.
pub fn edited_tensors(changes: &[TensorChange]) -> Json {
    let change = |change: &TensorChange| match change {
        TensorChange::Dropped(name) => json!({ "tensor": name, "change": "dropped" }),
        TensorChange::Replaced(name) => json!({ "tensor": name, "change": "replaced" }),
        TensorChange::Added(name) => json!({ "tensor": name, "change": "added" }),
        TensorChange::Renamed(old, new) => {
            json!({ "tensor": old, "change": "renamed", "to": new })
        }
    };
    changes.iter().map(change).collect()
}

/// Serializes a memory estimate: `memory` of `inspect/2`.
pub fn memory(report: &memory::MemoryEstimate) -> Json {
    let devices = report.devices.iter().map(|device| {
        json!({
            "first_layer": device.layers.0,
            "layers": device.layers.1 - device.layers.0,
            "output": device.has_output,
            "weights": device.weights,
            "kv_cache": device.cache,
            "compute_buffer": device.compute_buffer,
            "total": device.total(),
        })
    });
    json!({
        "context": report.context,
        "batch": report.batch,
        "weights": report.weights,
        "kv_cache": report.cache,
        "kv_cache_per_token": report.cache_per_token,
        "compute_buffer": report.compute_buffer,
        "total": report.total(),
        "host": report.host,
        "devices": devices.collect::<Json>(),
    })
}
