//! What a way to quantize is: a row of a table.

use serde_json::Value;

use super::{Matrix, Set, Wrong};
use crate::raw::Raw;

/// A way to quantize.
pub(super) struct Method {
    /// What people call it.
    pub name: &'static str,
    /// What `quant_method` says; the first is the usual word.
    pub words: &'static [&'static str],
    /// A file of the program that quantizes so, where that file does not say how.
    pub file: Option<&'static str>,
    /// How matrices are read, with what the configuration says of them.
    pub read: fn(&Value) -> Result<Read, Unsupported>,
}

/// Finds the matrix of which a tensor is the packed part, if it is that of one.
pub(super) type Read = Box<dyn Fn(&Set, &Raw) -> Result<Option<Matrix>, Wrong>>;

/// What a configuration asks for and is not known, and what to do about it.
pub(super) struct Unsupported(pub String, pub &'static str);

/// A text among the fields of a configuration; nothing where there is none.
pub(super) fn text<'f>(fields: &'f Value, field: &str) -> &'f str {
    fields.get(field).and_then(Value::as_str).unwrap_or_default()
}
