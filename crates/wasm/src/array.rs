//! Arrays of the metadata, whose elements are decoded on demand.

use gguf::{Array, Value, ValueType};
use js_sys::{Array as JsArray, Uint8Array, Uint16Array, Uint32Array};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::scalar::scalar;

/// Array within an array, which keeps the header in memory.
#[wasm_bindgen]
pub struct NestedArray(Array);

#[wasm_bindgen]
impl NestedArray {
    /// Returns element type and number of elements.
    pub fn description(&self) -> JsArray {
        description(&self.0)
    }

    /// Returns elements in a range, as [`elements`].
    pub fn elements(&self, start: usize, end: usize) -> JsValue {
        elements(&self.0, start, end)
    }
}

/// Returns element type and number of elements.
pub fn description(array: &Array) -> JsArray {
    JsArray::of2(&array.element_type().name().into(), &(array.len() as f64).into())
}

/// Returns elements in a range: a typed array of numbers, a list of booleans or of [`NestedArray`]s, or [`strings`].
pub fn elements(array: &Array, start: usize, end: usize) -> JsValue {
    // Nearly all files are little-endian, as WebAssembly is.
    let buffer = array.little_endian().zip(array.element_type().byte_len()).map(|(bytes, size)| {
        let range = start.saturating_mul(size)..end.saturating_mul(size);
        Uint8Array::from(bytes.get(range).unwrap_or_default()).buffer()
    });
    let elements = array.iter().skip(start).take(end.saturating_sub(start));
    macro_rules! numbers {
        ($variant:ident, $typed:ident) => {{
            if let Some(buffer) = &buffer {
                return js_sys::$typed::new(buffer).into();
            }
            let number = |value| match value {
                Value::$variant(number) => Some(number),
                _ => None,
            };
            js_sys::$typed::from(&elements.filter_map(number).collect::<Vec<_>>()[..]).into()
        }};
    }
    match array.element_type() {
        ValueType::U8 => numbers!(U8, Uint8Array),
        ValueType::I8 => numbers!(I8, Int8Array),
        ValueType::U16 => numbers!(U16, Uint16Array),
        ValueType::I16 => numbers!(I16, Int16Array),
        ValueType::U32 => numbers!(U32, Uint32Array),
        ValueType::I32 => numbers!(I32, Int32Array),
        ValueType::F32 => numbers!(F32, Float32Array),
        ValueType::U64 => numbers!(U64, BigUint64Array),
        ValueType::I64 => numbers!(I64, BigInt64Array),
        ValueType::F64 => numbers!(F64, Float64Array),
        ValueType::String => strings(array, start, end).into(),
        ValueType::Bool | ValueType::Array => {
            elements.map(|value| to_js(&value)).collect::<JsArray>().into()
        }
    }
}

/// Returns the strings in a range: the units of all texts in UTF-16, and the number of those of each. JavaScript decodes
/// one text much faster than many, and UTF-16 faster than UTF-8.
fn strings(array: &Array, start: usize, end: usize) -> JsArray {
    let strings = array.strings().into_iter().flatten();
    let (mut units, mut lengths) = (Vec::new(), Vec::new());
    for bytes in strings.skip(start).take(end.saturating_sub(start)) {
        let before = units.len();
        match bytes.is_ascii() {
            true => units.extend(bytes.iter().copied().map(u16::from)),
            false => units.extend(String::from_utf8_lossy(bytes).encode_utf16()),
        }
        lengths.push((units.len() - before) as u32);
    }
    JsArray::of2(&Uint16Array::from(&units[..]), &Uint32Array::from(&lengths[..]))
}

/// Converts an element.
fn to_js(value: &Value) -> JsValue {
    match value {
        Value::Array(array) => NestedArray(array.clone()).into(),
        value => scalar(value),
    }
}
