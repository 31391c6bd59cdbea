//! Operators.

use std::rc::Rc;

use super::budget::Budget;
use super::error::{Result, failed};
use super::format::percent;
use super::markup::escape;
use super::syntax::tree::{Binary, Comparison};
use super::value::{Value, ViewKind, equal, less, text_of};

/// Computes `left OPERATOR right`.
pub fn binary(operation: Binary, left: &Value, right: &Value, budget: &Budget) -> Result<Value> {
    if let (Binary::Remainder, Value::Text(format)) = (operation, left) {
        let text = percent::format(&format.text, right, format.is_markup, budget)?;
        return Ok(Value::markup(text, format.is_markup));
    }
    left.defined()?;
    right.defined()?;
    match operation {
        Binary::Add => add(left, right, budget),
        Binary::Multiply => multiply(left, right, budget),
        _ => arithmetic(operation, left, right),
    }
}

fn add(left: &Value, right: &Value, budget: &Budget) -> Result<Value> {
    let join = |left: &[Value], right: &[Value]| {
        budget.list(left.len() + right.len())?;
        Ok([left, right].concat())
    };
    Ok(match (left, right) {
        (Value::Text(a), Value::Text(b)) => {
            let is_markup = a.is_markup || b.is_markup;
            let (a, b) = match is_markup {
                true => (escape(left, budget)?, escape(right, budget)?),
                false => (Rc::clone(&a.text), Rc::clone(&b.text)),
            };
            budget.text(a.len() + b.len())?;
            Value::markup([&*a, &*b].concat(), is_markup)
        }
        (Value::List(left), Value::List(right)) => Value::list(join(left, right)?),
        (Value::Tuple(left), Value::Tuple(right)) => Value::tuple(join(left, right)?),
        _ => return arithmetic(Binary::Add, left, right),
    })
}

fn multiply(left: &Value, right: &Value, budget: &Budget) -> Result<Value> {
    let (sequence, count) = match (left.as_int(), right.as_int()) {
        (None, Some(count)) => (left, count),
        (Some(count), None) => (right, count),
        _ => return arithmetic(Binary::Multiply, left, right),
    };
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    Ok(match sequence {
        Value::Text(text) => {
            budget.text(text.text.len().saturating_mul(count))?;
            let count = if text.text.is_empty() { 0 } else { count };
            Value::markup(text.text.repeat(count), text.is_markup)
        }
        Value::List(items) | Value::Tuple(items) => {
            budget.list(items.len().saturating_mul(count))?;
            let count = if items.is_empty() { 0 } else { count };
            let len = items.len() * count;
            let repeated = items.iter().cycle().take(len).cloned().collect();
            match sequence {
                Value::List(_) => Value::list(repeated),
                _ => Value::tuple(repeated),
            }
        }
        _ => return arithmetic(Binary::Multiply, left, right),
    })
}

fn symbol(operation: Binary) -> &'static str {
    match operation {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::FloorDivide => "//",
        Binary::Remainder => "%",
        Binary::Power => "**",
    }
}

fn arithmetic(operation: Binary, left: &Value, right: &Value) -> Result<Value> {
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return int_arithmetic(operation, a, b);
    }
    if let (Value::View(..), Value::View(..)) = (left, right) {
        return failed("views of dictionaries are not sets in a template");
    }
    match (left.as_float(), right.as_float()) {
        (Some(a), Some(b)) => float_arithmetic(operation, a, b).map(Value::Float),
        _ => failed(format!(
            "unsupported operand type(s) for {}: '{}' and '{}'",
            symbol(operation),
            left.type_name(),
            right.type_name()
        )),
    }
}

fn int_arithmetic(operation: Binary, a: i128, b: i128) -> Result<Value> {
    if b == 0 && matches!(operation, Binary::Divide | Binary::FloorDivide | Binary::Remainder) {
        return failed("division by zero");
    }
    let result = match operation {
        Binary::Add => a.checked_add(b),
        Binary::Subtract => a.checked_sub(b),
        Binary::Multiply => a.checked_mul(b),
        Binary::Divide => return Ok(Value::Float(a as f64 / b as f64)),
        Binary::FloorDivide => a
            .checked_div(b)
            .map(|quotient| if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }),
        Binary::Remainder => a.checked_rem(b).map(|remainder| {
            if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder }
        }),
        Binary::Power if b < 0 => {
            return float_arithmetic(operation, a as f64, b as f64).map(Value::Float);
        }
        Binary::Power => match (a, u32::try_from(b)) {
            (0 | 1, _) => Some(if b == 0 { 1 } else { a }),
            (-1, _) => Some(if b % 2 == 0 { 1 } else { -1 }),
            (_, Ok(exponent)) => a.checked_pow(exponent),
            _ => None,
        },
    };
    match result {
        Some(value) => Ok(Value::Int(value)),
        None => failed(format!(
            "{a} {} {b} has more than 127 bits, the most that a template can compute with here",
            symbol(operation)
        )),
    }
}

fn float_arithmetic(operation: Binary, a: f64, b: f64) -> Result<f64> {
    if b == 0.0 && matches!(operation, Binary::Divide | Binary::FloorDivide | Binary::Remainder) {
        return failed("division by zero");
    }
    Ok(match operation {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::FloorDivide => floor_divide(a, b).0,
        Binary::Remainder => floor_divide(a, b).1,
        Binary::Power if a == 0.0 && b < 0.0 => {
            return failed("0.0 cannot be raised to a negative power");
        }
        Binary::Power => {
            let power = a.powf(b);
            if power.is_nan() && !a.is_nan() && !b.is_nan() {
                return failed("complex numbers are not supported");
            }
            if power.is_infinite() && a.is_finite() && b.is_finite() {
                return failed("Numerical result out of range");
            }
            power
        }
    })
}

/// Returns quotient and remainder as CPython's `float_divmod`.
fn floor_divide(a: f64, b: f64) -> (f64, f64) {
    let mut remainder = a % b;
    let mut quotient = (a - remainder) / b;
    if remainder == 0.0 {
        remainder = 0f64.copysign(b);
    } else if (remainder < 0.0) != (b < 0.0) {
        remainder += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0f64.copysign(a / b), remainder);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, remainder)
}

/// Computes `-value` or `+value`.
pub fn signed(value: &Value, is_negative: bool) -> Result<Value> {
    value.defined()?;
    Ok(match value {
        Value::Float(value) => Value::Float(if is_negative { -value } else { *value }),
        other => match other.as_int() {
            Some(i128::MIN) if is_negative => {
                return failed("the number has more than 127 bits");
            }
            Some(value) if is_negative => Value::Int(-value),
            Some(value) => Value::Int(value),
            None => {
                let sign = if is_negative { '-' } else { '+' };
                return failed(format!(
                    "bad operand type for unary {sign}: '{}'",
                    other.type_name()
                ));
            }
        },
    })
}

/// Computes `left COMPARISON right`.
pub fn compare(
    comparison: Comparison,
    left: &Value,
    right: &Value,
    budget: &Budget,
) -> Result<bool> {
    Ok(match comparison {
        Comparison::Equal => equal(left, right, budget)?,
        Comparison::NotEqual => !equal(left, right, budget)?,
        Comparison::Less => less(left, right, budget)?,
        Comparison::Greater => less(right, left, budget)?,
        Comparison::LessOrEqual | Comparison::GreaterOrEqual if is_nan(left) || is_nan(right) => {
            false
        }
        Comparison::LessOrEqual => !less(right, left, budget)?,
        Comparison::GreaterOrEqual => !less(left, right, budget)?,
        Comparison::In => contains(right, left, budget)?,
        Comparison::NotIn => !contains(right, left, budget)?,
    })
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(value) if value.is_nan())
}

/// Returns `value in container`.
pub fn contains(container: &Value, value: &Value, budget: &Budget) -> Result<bool> {
    Ok(match container {
        Value::Text(text) => {
            let Some(part) = value.as_str() else {
                value.defined()?;
                return failed(format!(
                    "'in <string>' requires string as left operand, not {}",
                    value.type_name()
                ));
            };
            budget.text(text.text.len())?;
            text.text.contains(part)
        }
        Value::Dict(dict) | Value::View(dict, ViewKind::Keys) => dict.get(value, budget)?.is_some(),
        Value::Range(range) => match value {
            Value::Float(value) => {
                value.fract() == 0.0 && value.abs() < 1e30 && range.contains(*value as i128)
            }
            other => other.as_int().is_some_and(|value| range.contains(value)),
        },
        Value::List(items) | Value::Tuple(items) => any_equal(items, value, budget)?,
        other => any_equal(&other.items(budget)?, value, budget)?,
    })
}

fn any_equal(items: &[Value], value: &Value, budget: &Budget) -> Result<bool> {
    for item in items {
        if equal(item, value, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Computes `a ~ b ~ c`; with `autoescape`, the texts are escaped if one is `Markup`.
pub fn concat(parts: &[Value], autoescape: bool, budget: &Budget) -> Result<Value> {
    let is_markup = autoescape && parts.iter().any(Value::is_markup);
    let mut out = String::new();
    for part in parts {
        let text = if is_markup { escape(part, budget)? } else { text_of(part, budget)? };
        budget.text(text.len())?;
        out.push_str(&text);
    }
    Ok(Value::markup(out, is_markup))
}
