//! Conversion of metadata values to Python objects.

use gguf::{Array, Value, ValueType};
use numpy::IntoPyArray;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

/// Returns valid UTF-8 as `str` and other bytes as `bytes`.
pub fn text<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyAny> {
    match std::str::from_utf8(bytes) {
        Ok(text) => PyString::new(py, text).into_any(),
        Err(_) => PyBytes::new(py, bytes).into_any(),
    }
}

/// Converts a value. Arrays of numbers become numpy arrays, other arrays become lists.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::U8(v) => v.into_bound_py_any(py),
        Value::I8(v) => v.into_bound_py_any(py),
        Value::U16(v) => v.into_bound_py_any(py),
        Value::I16(v) => v.into_bound_py_any(py),
        Value::U32(v) => v.into_bound_py_any(py),
        Value::I32(v) => v.into_bound_py_any(py),
        Value::U64(v) => v.into_bound_py_any(py),
        Value::I64(v) => v.into_bound_py_any(py),
        Value::F32(v) => v.into_bound_py_any(py),
        Value::F64(v) => v.into_bound_py_any(py),
        Value::Bool(v) => v.into_bound_py_any(py),
        Value::String(bytes) => Ok(text(py, bytes)),
        Value::Array(array) => array_to_python(py, array),
    }
}

fn array_to_python<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    if let Some(strings) = array.strings() {
        let list = PyList::empty(py);
        for string in strings {
            list.append(text(py, string))?;
        }
        return Ok(list.into_any());
    }
    macro_rules! numbers {
        ($($variant:ident)*) => {
            match array.element_type() {
                $(ValueType::$variant => {
                    let number = |value| match value { Value::$variant(v) => Some(v), _ => None };
                    let numbers: Vec<_> = array.iter().filter_map(number).collect();
                    Ok(numbers.into_pyarray(py).into_any())
                })*
                ValueType::String | ValueType::Array => {
                    let list = PyList::empty(py);
                    array.iter().try_for_each(|value| list.append(to_python(py, &value)?))?;
                    Ok(list.into_any())
                }
            }
        };
    }
    numbers!(U8 I8 U16 I16 U32 I32 U64 I64 F32 F64 Bool)
}

/// Returns the name of a type as `gguf edit` accepts it, such as `u32` or `str[]`.
pub fn type_name(value: &Value) -> String {
    match value {
        Value::Array(array) => format!("{}[]", scalar_name(array.element_type())),
        other => scalar_name(other.value_type()).to_owned(),
    }
}

fn scalar_name(ty: ValueType) -> &'static str {
    match ty {
        ValueType::U8 => "u8",
        ValueType::I8 => "i8",
        ValueType::U16 => "u16",
        ValueType::I16 => "i16",
        ValueType::U32 => "u32",
        ValueType::I32 => "i32",
        ValueType::U64 => "u64",
        ValueType::I64 => "i64",
        ValueType::F32 => "f32",
        ValueType::F64 => "f64",
        ValueType::Bool => "bool",
        ValueType::String => "str",
        ValueType::Array => "arr",
    }
}
