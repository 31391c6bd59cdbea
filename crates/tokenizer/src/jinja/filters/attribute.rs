//! The filter `attr`, and attributes by which other filters select and sort.

use super::super::access;
use super::super::arguments::{Arguments, required};
use super::super::budget::Budget;
use super::super::error::{Result, failed};
use super::super::machine::Machine;
use super::super::value::Value;

/// Path to an attribute, such as `function.name` or `0`.
#[derive(Debug)]
pub struct Path {
    parts: Vec<Value>,
    default: Option<Value>,
}

impl Path {
    /// Parses a path; `None` is the value itself.
    pub fn new(attribute: Option<&Value>, default: Option<Value>, budget: &Budget) -> Result<Self> {
        let parts = match attribute {
            None | Some(Value::None) => Vec::new(),
            Some(Value::Text(text)) => {
                let part = |part: &str| match part.parse() {
                    Ok(index) if part.bytes().all(|byte| byte.is_ascii_digit()) => {
                        Value::Int(index)
                    }
                    _ => Value::text(part),
                };
                budget.list(text.text.matches('.').count().saturating_mul(2))?;
                text.text.split('.').map(part).collect()
            }
            Some(index) => vec![Value::Int(index.expect_int()?)],
        };
        Ok(Self { parts, default })
    }

    /// Returns the attribute of a value.
    pub fn get(&self, value: &Value, budget: &Budget) -> Result<Value> {
        let mut value = value.clone();
        for part in &self.parts {
            value = access::item(&value, part, budget)?;
            if let (Value::Undefined(_), Some(default)) = (&value, &self.default) {
                value = default.clone();
            }
        }
        Ok(value)
    }

    /// Returns the attribute for comparisons: in lower case unless they are case-sensitive.
    pub fn key(&self, value: &Value, case_sensitive: bool, budget: &Budget) -> Result<Value> {
        let value = self.get(value, budget)?;
        value.pay(budget)?;
        Ok(folded(value, case_sensitive))
    }
}

/// Converts a string to lower case unless comparisons are case-sensitive.
pub fn folded(value: Value, case_sensitive: bool) -> Value {
    match value.as_str() {
        Some(text) if !case_sensitive => Value::text(text.to_lowercase()),
        _ => value,
    }
}

pub fn attr(name: &str, value: &Value, arguments: Arguments, _: &Machine) -> Result<Value> {
    let [attribute] = arguments.bind(name, ["name"])?;
    let attribute = required(attribute, name)?;
    let Some(attribute) = attribute.as_str() else {
        return failed("attribute name must be string");
    };
    if let Value::Undefined(_) = value {
        value.defined()?;
    }
    let found = access::python_attribute(value, attribute);
    Ok(found.unwrap_or_else(|| access::missing_attribute(value, attribute)))
}
