//! Equality and order.

use std::rc::Rc;

use super::{Dict, MAX_DEPTH, Value, ViewKind};
use crate::jinja::budget::Budget;
use crate::jinja::error::{Result, failed};

/// Returns `left == right`.
pub fn equal(left: &Value, right: &Value, budget: &Budget) -> Result<bool> {
    equal_at(left, right, budget, 0)
}

fn equal_at(left: &Value, right: &Value, budget: &Budget, depth: usize) -> Result<bool> {
    budget.spend(1)?;
    if depth > MAX_DEPTH {
        return failed("maximum recursion depth exceeded in comparison");
    }
    let all = |left: &[Value], right: &[Value]| {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (left, right) in left.iter().zip(right) {
            if !equal_at(left, right, budget, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    Ok(match (left, right) {
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
        (Value::Text(left), Value::Text(right)) => {
            budget.text(left.text.len().min(right.text.len()))?;
            left.text == right.text
        }
        (Value::List(left), Value::List(right)) => Rc::ptr_eq(left, right) || all(left, right)?,
        (Value::Dict(left), Value::Dict(right)) => {
            Rc::ptr_eq(left, right) || equal_dicts(left, right, budget, depth)?
        }
        (Value::Range(left), Value::Range(right)) => left.identity() == right.identity(),
        (Value::View(left, left_kind), Value::View(right, right_kind))
            if *left_kind != ViewKind::Values && left_kind == right_kind =>
        {
            match left_kind {
                ViewKind::Items => equal_dicts(left, right, budget, depth)?,
                _ => {
                    let mut same = left.len() == right.len();
                    for key in left.keys() {
                        same = same && right.get(key, budget)?.is_some();
                    }
                    same
                }
            }
        }
        (Value::Iterator(left), Value::Iterator(right)) => Rc::ptr_eq(left, right),
        (Value::Namespace(left), Value::Namespace(right)) => Rc::ptr_eq(left, right),
        (Value::Object(left), Value::Object(right)) => Rc::ptr_eq(left, right),
        (Value::Method(left), Value::Method(right)) => {
            left.1 == right.1 && equal_at(&left.0, &right.0, budget, depth + 1)?
        }
        _ => match (left.as_tuple(), right.as_tuple()) {
            (Some(left), Some(right)) => all(left, right)?,
            _ => match numbers(left, right) {
                Some(Numbers::Int(left, right)) => left == right,
                Some(Numbers::Float(left, right)) => left == right,
                None => false,
            },
        },
    })
}

fn equal_dicts(left: &Dict, right: &Dict, budget: &Budget, depth: usize) -> Result<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (key, value) in left.iter() {
        match right.get(key, budget)? {
            Some(other) if equal_at(value, other, budget, depth + 1)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

enum Numbers {
    Int(i128, i128),
    Float(f64, f64),
}

fn numbers(left: &Value, right: &Value) -> Option<Numbers> {
    match (left.as_int(), right.as_int()) {
        (Some(left), Some(right)) => Some(Numbers::Int(left, right)),
        _ => Some(Numbers::Float(left.as_float()?, right.as_float()?)),
    }
}

/// Returns `left < right`, or fails if the values have no order.
pub fn less(left: &Value, right: &Value, budget: &Budget) -> Result<bool> {
    less_at(left, right, budget, 0)
}

fn less_at(left: &Value, right: &Value, budget: &Budget, depth: usize) -> Result<bool> {
    budget.spend(1)?;
    if depth > MAX_DEPTH {
        return failed("maximum recursion depth exceeded in comparison");
    }
    left.defined()?;
    right.defined()?;
    if let (Value::Text(left), Value::Text(right)) = (left, right) {
        budget.text(left.text.len().min(right.text.len()))?;
        return Ok(left.text < right.text);
    }
    let lists = match (left, right) {
        (Value::List(left), Value::List(right)) => Some((&left[..], &right[..])),
        _ => left.as_tuple().zip(right.as_tuple()),
    };
    if let Some((left, right)) = lists {
        for (left, right) in left.iter().zip(right) {
            if !equal_at(left, right, budget, depth + 1)? {
                return less_at(left, right, budget, depth + 1);
            }
        }
        return Ok(left.len() < right.len());
    }
    match numbers(left, right) {
        Some(Numbers::Int(left, right)) => Ok(left < right),
        Some(Numbers::Float(left, right)) => Ok(left < right),
        None => failed(format!(
            "'<' not supported between instances of '{}' and '{}'",
            left.type_name(),
            right.type_name()
        )),
    }
}
