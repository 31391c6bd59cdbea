//! Tests of `is`.

use super::arguments::Arguments;
use super::budget::Budget;
use super::error::{Result, failed};
use super::operators::{compare, contains};
use super::syntax::tree::Comparison;
use super::value::{Key, Value, text_of};

/// Names of the tests.
pub const NAMES: [&str; 39] = [
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "callable",
    "defined",
    "divisibleby",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

/// Computes `value is name(arguments)`; the caller handles `filter`, since it knows their names.
pub fn call(name: &str, value: &Value, arguments: Arguments, budget: &Budget) -> Result<bool> {
    arguments.pay(budget)?;
    let comparison = match name {
        "==" | "eq" | "equalto" => Some(Comparison::Equal),
        "!=" | "ne" => Some(Comparison::NotEqual),
        "<" | "lt" | "lessthan" => Some(Comparison::Less),
        "<=" | "le" => Some(Comparison::LessOrEqual),
        ">" | "gt" | "greaterthan" => Some(Comparison::Greater),
        ">=" | "ge" => Some(Comparison::GreaterOrEqual),
        _ => None,
    };
    if comparison.is_some() || ["in", "divisibleby", "sameas"].contains(&name) {
        let parameter = match name {
            "in" => "seq",
            "divisibleby" => "num",
            "sameas" => "other",
            _ => "",
        };
        let [other] = arguments.bind(name, [parameter])?;
        let other = super::arguments::required(other, name)?;
        return match (comparison, name) {
            (Some(comparison), _) => compare(comparison, value, &other, budget),
            (None, "in") => contains(&other, value, budget),
            (None, "sameas") => Ok(is_same(value, &other)),
            (None, _) => divides(value, &other),
        };
    }
    arguments.none(name)?;
    Ok(match name {
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "none" => value.is_none(),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
        "string" => matches!(value, Value::Text(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "sequence" => matches!(
            value,
            Value::Text(_)
                | Value::List(_)
                | Value::Tuple(_)
                | Value::Dict(_)
                | Value::Range(_)
                | Value::Undefined(_)
        ),
        "iterable" => is_iterable(value),
        "callable" => match value {
            Value::Method(_) | Value::Undefined(_) => true,
            Value::Object(object) => object.is_callable(),
            _ => false,
        },
        "escaped" => value.is_markup(),
        "odd" => parity(value)? == 1.0,
        "even" => parity(value)? == 0.0,
        "lower" | "upper" => {
            let text = Value::text(text_of(value, budget)?);
            let method = if name == "lower" { "islower" } else { "isupper" };
            super::methods::call(&text, method, Arguments::default(), budget)?.is_true()
        }
        "filter" | "test" => {
            Key::of(value, budget)?;
            name == "test" && value.as_str().is_some_and(|name| NAMES.contains(&name))
        }
        _ => return failed(format!("No test named '{name}'.")),
    })
}

/// Whether a value can be iterated over.
pub fn is_iterable(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.attribute("index0").is_some(),
        Value::None
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Namespace(_)
        | Value::Method(_) => false,
        _ => true,
    }
}

/// Returns the remainder of a division by two.
fn parity(value: &Value) -> Result<f64> {
    value.defined()?;
    if let Some(value) = value.as_int() {
        return Ok((value & 1) as f64);
    }
    match value {
        Value::Float(value) => Ok(value.rem_euclid(2.0)),
        other => failed(format!("{} is not a number", other.type_name())),
    }
}

fn divides(value: &Value, divisor: &Value) -> Result<bool> {
    value.defined()?;
    divisor.defined()?;
    match (value.as_int(), divisor.as_int()) {
        (_, Some(0)) => failed("integer modulo by zero"),
        (Some(value), Some(divisor)) => Ok(value.wrapping_rem(divisor) == 0),
        _ => match (value.as_float(), divisor.as_float()) {
            (Some(_), Some(0.0)) => failed("float modulo by zero"),
            (Some(value), Some(divisor)) => Ok(value % divisor == 0.0),
            _ => failed("divisibleby needs numbers"),
        },
    }
}

/// Whether two values are one object in CPython, which keeps one object of each small integer,
/// constant and short string.
fn is_same(left: &Value, right: &Value) -> bool {
    use std::rc::Rc;
    match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left.to_bits() == right.to_bits(),
        (Value::Text(left), Value::Text(right)) => {
            left.text == right.text && left.is_markup == right.is_markup
        }
        (Value::List(left), Value::List(right)) => Rc::ptr_eq(left, right),
        (Value::Tuple(left), Value::Tuple(right)) => {
            Rc::ptr_eq(left, right) || left.is_empty() && right.is_empty()
        }
        (Value::Dict(left), Value::Dict(right)) => Rc::ptr_eq(left, right),
        (Value::Namespace(left), Value::Namespace(right)) => Rc::ptr_eq(left, right),
        (Value::Iterator(left), Value::Iterator(right)) => Rc::ptr_eq(left, right),
        (Value::Object(left), Value::Object(right)) => Rc::ptr_eq(left, right),
        _ => false,
    }
}
