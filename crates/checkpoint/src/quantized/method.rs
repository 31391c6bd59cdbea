//! Definition of a quantization method: a row of the table.

use serde_json::Value;

use super::{Matrix, MatrixError, TensorSet};
use crate::raw::Raw;

/// A quantization method.
pub(super) struct Method {
    /// Display name.
    pub name: &'static str,
    /// Values of `quant_method`; the first is the usual one.
    pub names: &'static [&'static str],
    /// File of the quantizer whose existence implies the method.
    pub file: Option<&'static str>,
    /// Creates the reader of matrices from the configuration.
    pub read: fn(&Value) -> Result<Read, Unsupported>,
}

/// Recognises and reads the matrix whose packed part is the given tensor; `None` if it is not a
/// packed part.
pub(super) type Read = Box<dyn Fn(&TensorSet, &Raw) -> Result<Option<Matrix>, MatrixError>>;

/// An unsupported setting, and advice.
pub(super) struct Unsupported(pub String, pub &'static str);

/// Returns a string field of a configuration; empty if it is missing.
pub(super) fn text<'f>(fields: &'f Value, field: &str) -> &'f str {
    fields.get(field).and_then(Value::as_str).unwrap_or_default()
}
