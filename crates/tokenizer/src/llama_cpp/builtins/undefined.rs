//! Filters of undefined values and of `None`: most return an empty value.

use super::{Call, Table, default, empty_list, tojson};
use crate::llama_cpp::result::Result;
use crate::llama_cpp::value::Value;

pub const UNDEFINED: Table = &[
    ("default", default),
    ("capitalize", empty_text),
    ("first", undefined),
    ("items", empty_list),
    ("join", empty_text),
    ("last", undefined),
    ("length", zero),
    ("list", empty_list),
    ("lower", empty_text),
    ("map", empty_list),
    ("max", undefined),
    ("min", undefined),
    ("reject", empty_list),
    ("rejectattr", empty_list),
    ("replace", empty_text),
    ("reverse", empty_list),
    ("safe", empty_text),
    ("select", empty_list),
    ("selectattr", empty_list),
    ("sort", empty_list),
    ("string", empty_text),
    ("strip", empty_text),
    ("sum", zero),
    ("title", empty_text),
    ("truncate", empty_text),
    ("unique", empty_list),
    ("upper", empty_text),
    ("wordcount", zero),
];

pub const NONE: Table = &[
    ("default", default),
    ("tojson", tojson),
    ("string", none),
    ("safe", none),
    ("items", empty_list),
    ("map", empty_list),
    ("reject", empty_list),
    ("rejectattr", empty_list),
    ("select", empty_list),
    ("selectattr", empty_list),
    ("unique", empty_list),
];

fn empty_text(_: &Call<'_>) -> Result<Value> {
    Ok(Value::text(""))
}

fn undefined(_: &Call<'_>) -> Result<Value> {
    Ok(Value::undefined(""))
}

fn zero(_: &Call<'_>) -> Result<Value> {
    Ok(Value::Int(0))
}

fn none(_: &Call<'_>) -> Result<Value> {
    Ok(Value::text("None"))
}
