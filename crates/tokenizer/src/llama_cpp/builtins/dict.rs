//! Methods and filters of dictionaries. There is no `default`.

use std::rc::Rc;

use super::list::sorted;
use super::{Call, Table, not_implemented, tojson};
use crate::llama_cpp::result::Result;
use crate::llama_cpp::value::{Dict, Value, text_of};

pub const DICT: Table = &[
    ("get", get),
    ("keys", |call| each(call, |key, _| key)),
    ("values", |call| each(call, |_, value| value)),
    ("items", |call| each(call, |key, value| Value::tuple(vec![key, value]))),
    ("tojson", tojson),
    ("string", string),
    ("length", |call| Ok(Value::Int(call.dict()?.len() as i64))),
    ("dictsort", dictsort),
    ("join", not_implemented),
];

fn each(call: &Call<'_>, map: impl Fn(Value, Value) -> Value) -> Result<Value> {
    let entries = call.dict()?.entries();
    call.machine.budget.list(entries.len())?;
    Ok(Value::list(entries.into_iter().map(|(key, value)| map(key, value)).collect()))
}

fn get(call: &Call<'_>) -> Result<Value> {
    call.count(2, 3)?;
    let key = Value::Text(call.text(1)?);
    let otherwise = if call.arguments.len() == 3 { call.at(2)? } else { Value::None };
    Ok(call.dict()?.get(&key, &call.machine.budget)?.unwrap_or(otherwise))
}

fn string(call: &Call<'_>) -> Result<Value> {
    let value = call.at(0)?;
    call.machine.mark_all(&value);
    text_of(&value, &call.machine.budget).map(Value::Text)
}

/// Returns a dictionary in another order; jinja2 returns a list.
fn dictsort(call: &Call<'_>) -> Result<Value> {
    let by_value = matches!(call.keyword_or("by", 2), Value::Text(by) if by.bytes == b"value");
    let is_reversed = call.keyword_or("reverse", 3).is_true()?;
    let place = usize::from(by_value);
    let entries = call.dict()?.entries().into_iter().map(|(key, value)| [key, value]).collect();
    let dict = Dict::new();
    for [key, value] in sorted(entries, is_reversed, |it: &[Value; 2]| Ok(it[place].clone()), call)?
    {
        dict.insert(key, value, &call.machine.budget)?;
    }
    Ok(Value::Dict(Rc::new(dict)))
}
