//! Tests: `value is name`.

use super::{Call, Table, not_implemented};
use crate::llama_cpp::result::{Result, failed};
use crate::llama_cpp::value::{Order, Value, compare, equal};

pub const TESTS: Table = &[
    ("boolean", |call| kind(call, |value| matches!(value, Value::Bool(_)))),
    ("callable", |call| kind(call, |value| matches!(value, Value::Function(_)))),
    ("odd", |call| Ok(Value::Bool(call.int(0)? % 2 != 0))),
    ("even", |call| Ok(Value::Bool(call.int(0)? % 2 == 0))),
    ("false", |call| kind(call, |value| matches!(value, Value::Bool(false)))),
    ("true", |call| kind(call, |value| matches!(value, Value::Bool(true)))),
    ("divisibleby", divisible),
    ("string", |call| kind(call, |value| matches!(value, Value::Text(_)))),
    ("integer", |call| kind(call, |value| matches!(value, Value::Int(_)))),
    ("float", |call| kind(call, |value| matches!(value, Value::Float(_)))),
    ("number", |call| kind(call, Value::is_number)),
    ("iterable", |call| kind(call, is_sequence)),
    ("sequence", |call| kind(call, is_sequence)),
    ("mapping", |call| kind(call, |value| matches!(value, Value::Dict(_)))),
    ("lower", |call| Ok(Value::Bool(!call.text(0)?.bytes.iter().any(u8::is_ascii_uppercase)))),
    ("upper", |call| Ok(Value::Bool(!call.text(0)?.bytes.iter().any(u8::is_ascii_lowercase)))),
    ("none", |call| kind(call, Value::is_none)),
    ("defined", |call| kind(call, |value| !value.is_undefined())),
    ("undefined", |call| kind(call, Value::is_undefined)),
    ("eq", |call| ordered(call, Order::Equal)),
    ("equalto", |call| ordered(call, Order::Equal)),
    ("ge", |call| ordered(call, Order::GreaterOrEqual)),
    ("gt", |call| ordered(call, Order::Greater)),
    ("greaterthan", |call| ordered(call, Order::Greater)),
    ("lt", |call| ordered(call, Order::Less)),
    ("lessthan", |call| ordered(call, Order::Less)),
    ("ne", |call| ordered(call, Order::NotEqual)),
    ("in", is_in),
    ("test", |call| Ok(Value::Bool(super::test(&call.text(0)?.lossy()).is_some()))),
    ("sameas", is_same),
    ("escaped", not_implemented),
    ("filter", not_implemented),
];

fn kind(call: &Call<'_>, is_kind: impl Fn(&Value) -> bool) -> Result<Value> {
    Ok(Value::Bool(is_kind(&call.at(0)?)))
}

fn is_sequence(value: &Value) -> bool {
    matches!(value, Value::Dict(_) | Value::List(_) | Value::Text(_) | Value::Undefined(_))
}

fn ordered(call: &Call<'_>, order: Order) -> Result<Value> {
    call.count(2, 2)?;
    compare(&call.at(0)?, &call.at(1)?, order, &call.machine.budget).map(Value::Bool)
}

fn divisible(call: &Call<'_>) -> Result<Value> {
    match call.int(0)?.checked_rem(call.int(1)?) {
        Some(rest) => Ok(Value::Bool(rest == 0)),
        None => failed("division by zero, at which llama.cpp crashes"),
    }
}

fn is_in(call: &Call<'_>) -> Result<Value> {
    call.count(2, usize::MAX)?;
    let (needle, haystack) = (call.at(0)?, call.at(1)?);
    contains(&needle, &haystack, call).map(Value::Bool)
}

fn contains(needle: &Value, haystack: &Value, call: &Call<'_>) -> Result<bool> {
    let budget = &call.machine.budget;
    match haystack {
        Value::Undefined(_) => Ok(false),
        Value::List(list) => {
            for item in list.items.borrow().iter() {
                if equal(needle, item, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Text(text) => {
            let Value::Text(part) = needle else {
                return failed(format!(
                    "`in` of a string takes a string, got {}",
                    needle.type_name()
                ));
            };
            budget.text(text.bytes.len().saturating_add(part.bytes.len()))?;
            Ok(super::text::find(&text.bytes, &part.bytes, 0).is_some())
        }
        Value::Dict(dict) => Ok(dict.get(needle, budget)?.is_some()),
        other => failed(format!("`in` takes an iterable, got {}", other.type_name())),
    }
}

/// Whether two values are one object. Small integers are, as in Python.
fn is_same(call: &Call<'_>) -> Result<Value> {
    const SMALL: std::ops::RangeInclusive<i64> = -5..=256;
    call.count(2, usize::MAX)?;
    Ok(Value::Bool(match (&call.at(0)?, &call.at(1)?) {
        (Value::None, Value::None) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right && SMALL.contains(left),
        (left, right) => left.address().is_some() && left.address() == right.address(),
    }))
}
