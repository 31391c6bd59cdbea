//! Arguments of filters, tests, functions and methods.

use super::budget::Budget;
use super::error::{Result, failed};
use super::value::Value;

/// Arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    pub positional: Vec<Value>,
    pub named: Vec<(String, Value)>,
}

impl Arguments {
    /// Takes the steps for reading the arguments.
    pub fn pay(&self, budget: &Budget) -> Result<()> {
        budget.list(self.positional.len() + 2 * self.named.len())?;
        self.positional.iter().try_for_each(|value| value.pay(budget))?;
        self.named.iter().try_for_each(|(_, value)| value.pay(budget))
    }

    /// Assigns the arguments to parameters of these names. A parameter that has no name takes
    /// positional arguments only.
    pub fn bind<const N: usize>(
        self,
        function: &str,
        names: [&str; N],
    ) -> Result<[Option<Value>; N]> {
        let mut values = [const { None }; N];
        let count = self.positional.len();
        if count > N {
            return failed(format!("{function}() takes {N} arguments but {count} were given"));
        }
        for (place, value) in values.iter_mut().zip(self.positional) {
            *place = Some(value);
        }
        for (name, value) in self.named {
            match names.iter().position(|other| *other == name && !other.is_empty()) {
                None => {
                    return failed(format!(
                        "{function}() got an unexpected keyword argument '{name}'"
                    ));
                }
                Some(at) if values[at].is_some() => {
                    return failed(format!(
                        "{function}() got multiple values for argument '{name}'"
                    ));
                }
                Some(at) => values[at] = Some(value),
            }
        }
        Ok(values)
    }

    /// Fails if there are arguments.
    pub fn none(self, function: &str) -> Result<()> {
        self.bind(function, []).map(drop)
    }
}

/// Returns a required argument.
pub fn required(value: Option<Value>, function: &str) -> Result<Value> {
    match value {
        Some(value) => Ok(value),
        None => failed(format!("{function}() missing a required argument")),
    }
}

/// Returns an optional argument, of which `None` is the default.
pub fn optional(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !value.is_none())
}

/// Returns an optional boolean, false by default.
pub fn flag(value: Option<Value>) -> bool {
    value.is_some_and(|value| value.is_true())
}

/// Returns an optional integer.
pub fn int(value: Option<Value>) -> Result<Option<i128>> {
    value.map(|value| value.expect_int()).transpose()
}
