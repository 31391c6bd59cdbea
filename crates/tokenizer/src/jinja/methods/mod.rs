//! Methods of values.

mod case;
mod search;
mod split;
mod text;

use std::rc::Rc;

use super::arguments::{Arguments, required};
use super::budget::Budget;
use super::error::{Result, failed};
use super::operators::contains;
use super::value::{Dict, Value, ViewKind, equal, less};

pub use case::capitalize;
pub use search::replace;
pub use split::lines;
pub use text::center;

/// Calls a method.
pub fn call(
    receiver: &Value,
    name: &'static str,
    arguments: Arguments,
    budget: &Budget,
) -> Result<Value> {
    arguments.pay(budget)?;
    match receiver {
        Value::Text(receiver) => text::call(receiver, name, arguments, budget),
        Value::Dict(dict) => dict_method(dict, name, arguments, budget),
        Value::List(items) if name == "copy" => {
            arguments.none(name)?;
            Ok(Value::List(Rc::clone(items)))
        }
        Value::List(_) | Value::Tuple(_) | Value::Range(_) => {
            sequence_method(receiver, name, arguments, budget)
        }
        Value::View(..) => {
            let [other] = arguments.bind(name, [""])?;
            for item in required(other, name)?.items(budget)? {
                if contains(receiver, &item, budget)? {
                    return Ok(Value::Bool(false));
                }
            }
            Ok(Value::Bool(true))
        }
        Value::Float(value) => float_method(*value, name, arguments),
        other => int_method(other.as_int().unwrap_or_default(), name, arguments),
    }
}

fn dict_method(
    dict: &Rc<Dict>,
    name: &str,
    arguments: Arguments,
    budget: &Budget,
) -> Result<Value> {
    Ok(match name {
        "get" => {
            let [key, default] = arguments.bind(name, ["", ""])?;
            let found = dict.get(&required(key, name)?, budget)?.cloned();
            found.unwrap_or(default.unwrap_or(Value::None))
        }
        "fromkeys" => {
            let [keys, value] = arguments.bind(name, ["", ""])?;
            return from_keys(&required(keys, name)?, value.unwrap_or(Value::None), budget);
        }
        _ => {
            arguments.none(name)?;
            match name {
                "keys" => Value::View(Rc::clone(dict), ViewKind::Keys),
                "values" => Value::View(Rc::clone(dict), ViewKind::Values),
                "items" => Value::View(Rc::clone(dict), ViewKind::Items),
                _ => Value::Dict(Rc::clone(dict)),
            }
        }
    })
}

/// Returns a dictionary with these keys and one value.
pub fn from_keys(keys: &Value, value: Value, budget: &Budget) -> Result<Value> {
    let mut dict = Dict::default();
    for key in keys.items(budget)? {
        dict.insert(key, value.clone(), budget)?;
    }
    Ok(Value::Dict(Rc::new(dict)))
}

fn sequence_method(
    receiver: &Value,
    name: &str,
    arguments: Arguments,
    budget: &Budget,
) -> Result<Value> {
    let [value, start, stop] = arguments.bind(name, ["", "", ""])?;
    let value = required(value, name)?;
    let items = receiver.items(budget)?;
    if name == "count" {
        let mut count = 0;
        for item in &items {
            count += i128::from(equal(item, &value, budget)?);
        }
        return Ok(Value::Int(count));
    }
    let bound = |bound: Option<Value>, default| match bound {
        None => Ok(default),
        Some(bound) => {
            let len = items.len() as i128;
            let bound = bound.expect_int()?;
            Ok((if bound < 0 { bound + len } else { bound }).clamp(0, len) as usize)
        }
    };
    let (start, stop) = (bound(start, 0)?, bound(stop, items.len())?);
    for (at, item) in items.iter().enumerate().take(stop).skip(start) {
        if equal(item, &value, budget)? {
            return Ok(Value::Int(at as i128));
        }
    }
    failed("the value is not in the sequence")
}

fn int_method(value: i128, name: &str, arguments: Arguments) -> Result<Value> {
    arguments.none(name)?;
    let magnitude = value.unsigned_abs();
    Ok(match name {
        "bit_length" => Value::Int(i128::from(u128::BITS - magnitude.leading_zeros())),
        "bit_count" => Value::Int(i128::from(magnitude.count_ones())),
        "as_integer_ratio" => Value::tuple(vec![Value::Int(value), Value::Int(1)]),
        _ => Value::Int(value),
    })
}

fn float_method(value: f64, name: &str, arguments: Arguments) -> Result<Value> {
    arguments.none(name)?;
    match name {
        "is_integer" => Ok(Value::Bool(value.is_finite() && value.fract() == 0.0)),
        "conjugate" => Ok(Value::Float(value)),
        _ => failed(format!("the method {name} of floats is not supported")),
    }
}

/// Sorts values by their keys, stably; `reverse` keeps the order of equal ones. Keys that have no
/// order, such as NaN, may end up anywhere.
pub fn sort(mut items: Vec<(Value, Value)>, reverse: bool, budget: &Budget) -> Result<Vec<Value>> {
    if reverse {
        items.reverse();
    }
    let mut sorted = merge_sort(items, budget)?;
    if reverse {
        sorted.reverse();
    }
    Ok(sorted.into_iter().map(|(_, value)| value).collect())
}

/// Sorts by merging. The sort of the standard library may panic if the order is not total.
fn merge_sort(mut left: Vec<(Value, Value)>, budget: &Budget) -> Result<Vec<(Value, Value)>> {
    if left.len() < 2 {
        return Ok(left);
    }
    let right = left.split_off(left.len() / 2);
    let mut right = merge_sort(right, budget)?.into_iter().peekable();
    let mut merged = Vec::with_capacity(2 * left.len() + 1);
    for item in merge_sort(left, budget)? {
        while let Some(other) = right.peek()
            && less(&other.0, &item.0, budget)?
        {
            merged.extend(right.next());
        }
        merged.push(item);
    }
    merged.extend(right);
    Ok(merged)
}
