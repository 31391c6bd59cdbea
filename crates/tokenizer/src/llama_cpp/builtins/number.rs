//! Filters of numbers and booleans.

use super::{Call, Table, default, tojson};
use crate::llama_cpp::result::Result;
use crate::llama_cpp::value::Value;

pub const INT: Table = &[
    ("default", default),
    ("abs", |call| Ok(Value::Int(call.int(0)?.wrapping_abs()))),
    ("int", |call| call.int(0).map(Value::Int)),
    ("float", |call| Ok(Value::Float(call.int(0)? as f64))),
    ("safe", tojson),
    ("string", tojson),
    ("tojson", tojson),
];

pub const FLOAT: Table = &[
    ("default", default),
    ("abs", |call| Ok(Value::Float(call.at(0)?.as_float()?.abs()))),
    ("int", |call| Ok(Value::Int(crate::llama_cpp::value::to_int(call.at(0)?.as_float()?)))),
    ("float", |call| call.at(0)),
    ("safe", tojson),
    ("string", tojson),
    ("tojson", tojson),
];

pub const BOOL: Table = &[
    ("default", default),
    ("int", |call| Ok(Value::Int(call.at(0)?.as_int()?))),
    ("float", |call| Ok(Value::Float(call.at(0)?.as_int()? as f64))),
    ("safe", bool_text),
    ("string", bool_text),
    ("tojson", tojson),
];

fn bool_text(call: &Call<'_>) -> Result<Value> {
    Ok(Value::text(if call.at(0)?.is_true()? { "True" } else { "False" }))
}
