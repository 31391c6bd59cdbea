//! Values of a GGUF in JSON.

use gguf::Metadata;
use serde_json::Value;

/// Returns a number, boolean or string as JSON. An F32 becomes the shortest decimal that parses to it.
pub(super) fn value(metadata: &Metadata, key: &str) -> Option<Value> {
    match metadata.get(key)? {
        gguf::Value::F32(value) => value.to_string().parse::<f64>().ok().map(Value::from),
        gguf::Value::Bool(value) => Some((*value).into()),
        gguf::Value::String(_) => metadata.str(key).map(Value::from),
        value => value.to_u64().map(Value::from),
    }
}
