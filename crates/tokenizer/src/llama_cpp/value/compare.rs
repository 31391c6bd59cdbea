//! Equality, and the comparisons of tests and of `sort`.

use super::{MAX_DEPTH, Value, text_of};
use crate::jinja::Budget;
use crate::llama_cpp::result::{Result, failed};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Equal,
    NotEqual,
    Less,
    Greater,
    GreaterOrEqual,
}

/// Whether a value can be part of a key: functions and undefined values cannot, and neither can lists and
/// dictionaries with items that can change.
pub fn is_hashable(value: &Value, budget: &Budget) -> Result<bool> {
    is_hashable_nested(value, budget, 0)
}

fn is_hashable_nested(value: &Value, budget: &Budget, depth: usize) -> Result<bool> {
    budget.spend(1)?;
    if depth > MAX_DEPTH {
        return failed("a value is nested too deeply for a key");
    }
    let is_fixed = |item: &Value| match item {
        Value::List(list) if !list.is_tuple => Ok(false),
        Value::Dict(_) => Ok(false),
        other => is_hashable_nested(other, budget, depth + 1),
    };
    match value {
        Value::Undefined(_) | Value::Function(_) => return Ok(false),
        Value::List(list) => {
            for item in list.items.borrow().iter() {
                if !is_fixed(item)? {
                    return Ok(false);
                }
            }
        }
        Value::Dict(dict) => {
            for (_, value) in dict.entries() {
                if !is_fixed(&value)? {
                    return Ok(false);
                }
            }
        }
        _ => {}
    }
    Ok(true)
}

/// Whether two values are equal (`==`). Lists and dictionaries with items that can change never are; dictionaries
/// are only in the same order.
pub fn equal(left: &Value, right: &Value, budget: &Budget) -> Result<bool> {
    equal_nested(left, right, budget, 0)
}

fn equal_nested(left: &Value, right: &Value, budget: &Budget, depth: usize) -> Result<bool> {
    budget.spend(1)?;
    if depth > MAX_DEPTH {
        return failed("values are nested too deeply to be compared");
    }
    Ok(match (left, right) {
        (Value::Undefined(_), other) => other.is_undefined(),
        (Value::None, Value::None) | (Value::Function(_), Value::Function(_)) => true,
        (Value::Text(a), Value::Text(b)) => {
            budget.text(a.bytes.len().min(b.bytes.len()))?;
            a.bytes == b.bytes
        }
        (
            Value::Bool(_) | Value::Int(_) | Value::Float(_),
            Value::Bool(_) | Value::Int(_) | Value::Float(_),
        ) => left.as_int()? == right.as_int()? && number(left)? == number(right)?,
        (Value::List(a), Value::List(b)) => {
            if a.is_tuple != b.is_tuple
                || !is_hashable(left, budget)?
                || !is_hashable(right, budget)?
            {
                return Ok(false);
            }
            let (a, b) = (a.items.borrow(), b.items.borrow());
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal_nested(a, b, budget, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Dict(a), Value::Dict(b)) => {
            if !is_hashable(left, budget)? || !is_hashable(right, budget)? || a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.entries().iter().zip(b.entries()) {
                let is_same = equal_nested(&a.0, &b.0, budget, depth + 1)?
                    && equal_nested(&a.1, &b.1, budget, depth + 1)?;
                if !is_same {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}

fn number(value: &Value) -> Result<f64> {
    match value {
        Value::Bool(value) => Ok(f64::from(u8::from(*value))),
        other => other.as_float(),
    }
}

/// Compares as tests and `sort` do: numbers, strings, and numbers with strings as strings. Other types never compare.
pub fn compare(left: &Value, right: &Value, order: Order, budget: &Budget) -> Result<bool> {
    budget.spend(1)?;
    let is_comparable = |value: &Value| value.is_number() || matches!(value, Value::Text(_));
    if left.is_number() && right.is_number() {
        return Ok(ordered(left.as_float()?, right.as_float()?, order));
    }
    if is_comparable(left) && is_comparable(right) {
        let (left, right) = (text_of(left, budget)?, text_of(right, budget)?);
        budget.text(left.bytes.len().min(right.bytes.len()))?;
        return Ok(ordered(&left.bytes, &right.bytes, order));
    }
    match (left, right, order) {
        (Value::Bool(left), Value::Bool(right), Order::Equal) => Ok(left == right),
        (Value::Bool(left), Value::Bool(right), Order::NotEqual) => Ok(left != right),
        (Value::Bool(_), Value::Bool(_), _) => {
            failed("Unsupported comparison operator for bool type")
        }
        _ => Ok(false),
    }
}

fn ordered<T: PartialOrd>(left: T, right: T, order: Order) -> bool {
    match order {
        Order::Equal => left == right,
        Order::NotEqual => left != right,
        Order::Less => left < right,
        Order::Greater => left > right,
        Order::GreaterOrEqual => left >= right,
    }
}
