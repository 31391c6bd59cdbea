//! Operators between two values. Numbers are computed as floats.

use super::Interpreter;
use crate::llama_cpp::builtins::{self, Call};
use crate::llama_cpp::result::{Result, failed};
use crate::llama_cpp::value::{Text, Value, equal, text_of, to_int};

impl Interpreter<'_> {
    pub(super) fn binary(&self, operator: &str, left: &Value, right: &Value) -> Result<Value> {
        let budget = &self.machine.budget;
        let is_text = |value: &Value| matches!(value, Value::Text(_));
        let is_nothing = |value: &Value| value.is_none() || value.is_undefined();
        let joins = operator == "+" || operator == "~";
        let finds = operator == "in" || operator == "not in";
        match operator {
            "==" => return equal(left, right, budget).map(Value::Bool),
            "!=" => return Ok(Value::Bool(!equal(left, right, budget)?)),
            _ => {}
        }
        if is_nothing(left) || is_nothing(right) {
            let is_undefined = left.is_undefined() || right.is_undefined();
            if right.is_undefined() && finds {
                return Ok(Value::Bool(operator == "not in"));
            }
            if !is_undefined && !right.is_none() && finds {
                return self.membership(operator, left, right);
            }
            // Nothing and a string is the string.
            if joins && is_text(if is_nothing(left) { right } else { left }) {
                return Ok(if is_nothing(left) { right } else { left }.clone());
            }
            let kind = if is_undefined { "undefined" } else { "null" };
            return failed(format!("Cannot perform operation {operator} on {kind} values"));
        }
        if left.is_number()
            && right.is_number()
            && let Some(value) = arithmetic(operator, left, right)?
        {
            return Ok(value);
        }
        match (left, right) {
            (Value::List(a), Value::List(b)) if operator == "+" => {
                let (a, b) = (a.items.borrow(), b.items.borrow());
                budget.list(a.len() + b.len())?;
                return Ok(Value::list([a.as_slice(), b.as_slice()].concat()));
            }
            (Value::List(_), Value::List(_)) => {}
            (_, Value::List(_)) => {
                let is_member = self.membership("in", left, right)?.is_true()?;
                match operator {
                    "in" => return Ok(Value::Bool(is_member)),
                    "not in" => return Ok(Value::Bool(!is_member)),
                    _ => {}
                }
            }
            _ => {}
        }
        if joins && (is_text(left) || is_text(right)) {
            let (left, right) = (text_of(left, budget)?, text_of(right, budget)?);
            budget.text(left.weight() + right.weight())?;
            let mut text = Text::clone(&left);
            text.append(&right);
            return Ok(Value::Text(text.into()));
        }
        let repeated = match (left, right) {
            (Value::Text(text), Value::Int(count)) | (Value::Int(count), Value::Text(text)) => {
                Some((text, count))
            }
            _ => None,
        };
        if let Some((part, count)) = repeated.filter(|_| operator == "*") {
            let count = usize::try_from(*count).unwrap_or(0);
            budget.text(part.weight().saturating_mul(count))?;
            budget.list(count)?;
            let mut text = Text::default();
            for _ in 0..if part.bytes.is_empty() { 0 } else { count } {
                text.append(part);
            }
            return Ok(Value::Text(text.into()));
        }
        let holds = matches!(right, Value::Dict(_)) || is_text(left) && is_text(right);
        if holds {
            let is_member = self.membership("in", left, right)?.is_true()?;
            match operator {
                "in" => return Ok(Value::Bool(is_member)),
                "not in" => return Ok(Value::Bool(!is_member)),
                _ => {}
            }
        }
        failed(format!(
            "Unknown operator \"{operator}\" between {} and {}",
            left.type_name(),
            right.type_name()
        ))
    }

    fn membership(&self, operator: &str, left: &Value, right: &Value) -> Result<Value> {
        let Some(test) = builtins::test("in") else { return failed("there is no test `in`") };
        let arguments = vec![left.clone(), right.clone()];
        let is_member = test(&Call { machine: self.machine, name: "in", arguments })?.is_true()?;
        Ok(Value::Bool(is_member == (operator == "in")))
    }
}

/// Computes with floats; integers give an integer, but for a division.
fn arithmetic(operator: &str, left: &Value, right: &Value) -> Result<Option<Value>> {
    let (a, b) = (left.as_float()?, right.as_float()?);
    let number = |value: f64| match (left, right) {
        (Value::Int(_), Value::Int(_)) => Value::Int(to_int(value)),
        _ => Value::Float(value),
    };
    Ok(Some(match operator {
        "+" => number(a + b),
        "-" => number(a - b),
        "*" => number(a * b),
        "/" => Value::Float(a / b),
        "%" => number(a % b),
        "<" => Value::Bool(a < b),
        ">" => Value::Bool(a > b),
        "<=" => Value::Bool(a <= b),
        ">=" => Value::Bool(a >= b),
        _ => return Ok(None),
    }))
}
