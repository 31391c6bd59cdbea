//! Values that are not arrays.

use gguf::Value;
use js_sys::BigInt;
use wasm_bindgen::JsValue;

/// Converts a value that is not an array. Integers beyond 2^53 become a `BigInt`; invalid UTF-8 becomes U+FFFD.
pub fn scalar(value: &Value) -> JsValue {
    const MAX_SAFE: u64 = (1 << 53) - 1;
    match value {
        Value::String(bytes) => String::from_utf8_lossy(bytes).as_ref().into(),
        Value::Bool(value) => (*value).into(),
        Value::F32(value) => (*value).into(),
        Value::F64(value) => (*value).into(),
        Value::U64(value) if *value > MAX_SAFE => BigInt::from(*value).into(),
        Value::I64(value) if value.unsigned_abs() > MAX_SAFE => BigInt::from(*value).into(),
        Value::U64(value) => (*value as f64).into(),
        // Integers of at most 53 bits.
        integer => (integer.to_i64().unwrap_or_default() as f64).into(),
    }
}
