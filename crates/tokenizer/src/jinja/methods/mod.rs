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
    match receiver {
        Value::Text(receiver) => text::call(receiver, name, arguments, budget),
        Value::Dict(dict) => dict_method(dict, name, arguments),
        Value::List(items) if name == "copy" => {
            arguments.none(name)?;
            Ok(Value::List(Rc::clone(items)))
        }
        Value::List(_) | Value::Tuple(_) | Value::Range(_) => {
            sequence_method(receiver, name, arguments, budget)
        }
        Value::View(..) => {
            let [other] = arguments.bind(name, [""])?;
            for item in required(other, name)?.items()? {
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

fn dict_method(dict: &Rc<Dict>, name: &str, arguments: Arguments) -> Result<Value> {
    Ok(match name {
        "get" => {
            let [key, default] = arguments.bind(name, ["", ""])?;
            let found = dict.get(&required(key, name)?)?.cloned();
            found.unwrap_or(default.unwrap_or(Value::None))
        }
        "fromkeys" => {
            let [keys, value] = arguments.bind(name, ["", ""])?;
            return from_keys(&required(keys, name)?, value.unwrap_or(Value::None));
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
pub fn from_keys(keys: &Value, value: Value) -> Result<Value> {
    let mut dict = Dict::default();
    for key in keys.items()? {
        dict.insert(key, value.clone())?;
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
    let items = receiver.items()?;
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

/// Sorts values by their keys, stably; `reverse` keeps the order of equal ones.
pub fn sort(mut items: Vec<(Value, Value)>, reverse: bool, budget: &Budget) -> Result<Vec<Value>> {
    let mut error = None;
    if reverse {
        items.reverse();
    }
    items.sort_by(|(left, _), (right, _)| {
        use std::cmp::Ordering;
        if error.is_some() {
            return Ordering::Equal;
        }
        let order = less(left, right, budget).and_then(|is_less| match is_less {
            true => Ok(Ordering::Less),
            false if less(right, left, budget)? => Ok(Ordering::Greater),
            false => Ok(Ordering::Equal),
        });
        order.unwrap_or_else(|cause| {
            error = Some(cause);
            Ordering::Equal
        })
    });
    if reverse {
        items.reverse();
    }
    match error {
        Some(error) => Err(error),
        None => Ok(items.into_iter().map(|(_, value)| value).collect()),
    }
}
