//! Conversion of JSON reports to Python objects.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value as Json;

/// Converts JSON to dicts, lists, strings and numbers.
pub fn to_python<'py>(py: Python<'py>, json: &Json) -> PyResult<Bound<'py, PyAny>> {
    match json {
        Json::Null => Ok(py.None().into_bound(py)),
        Json::Bool(truth) => truth.into_bound_py_any(py),
        Json::String(text) => text.into_bound_py_any(py),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (_, Some(number)) => number.into_bound_py_any(py),
            _ => number.as_f64().into_bound_py_any(py),
        },
        Json::Array(items) => {
            let list = PyList::empty(py);
            items.iter().try_for_each(|item| list.append(to_python(py, item)?))?;
            Ok(list.into_any())
        }
        Json::Object(fields) => {
            let dict = PyDict::new(py);
            fields
                .iter()
                .try_for_each(|(name, field)| dict.set_item(name, to_python(py, field)?))?;
            Ok(dict.into_any())
        }
    }
}
