//! Metadata values.

use gguf::{Array, Value};
use serde_json::{Value as Json, json};

/// Maximum length of arrays that documents list in full unless asked for more.
pub const SHORT_ARRAY: u64 = 16;

/// Serializes a metadata value. Invalid UTF-8 is replaced; arrays longer than `longest` become an object with their length
/// and first elements.
pub fn value(value: &Value, longest: u64) -> Json {
    match value {
        Value::String(bytes) => json!(String::from_utf8_lossy(bytes)),
        Value::Array(array) => array_json(array, longest),
        Value::Bool(v) => json!(v),
        // JSON has no NaN and infinity: they become null.
        Value::F32(v) => json!(v),
        Value::F64(v) => json!(v),
        Value::U64(v) => json!(v),
        integer => json!(integer.to_i64()),
    }
}

/// Serializes a metadata value with its type: `{ "type": "u32", "value": 1 }`, and `element_type` for arrays.
/// Arrays are limited as by [`value()`].
pub fn typed_value(value: &Value, longest: u64) -> Json {
    let mut json = json!({ "type": value.value_type().name() });
    if let Some(array) = value.as_array() {
        json["element_type"] = array.element_type().name().into();
    }
    json["value"] = self::value(value, longest);
    json
}

fn array_json(array: &Array, longest: u64) -> Json {
    const FIRST: usize = 8;
    let elements = |n| array.iter().take(n).map(|v| value(&v, longest)).collect::<Json>();
    if array.len() <= longest {
        return elements(usize::MAX);
    }
    json!({ "length": array.len(), "first": elements(FIRST) })
}
