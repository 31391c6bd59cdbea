//! `map`, `select` and their relatives.

use std::mem;

use super::super::arguments::Arguments;
use super::super::error::{Result, failed};
use super::super::machine::Machine;
use super::super::tests;
use super::super::value::Value;
use super::attribute::Path;

/// Removes the first positional argument.
fn take_first(arguments: &mut Arguments) -> Option<Value> {
    (!arguments.positional.is_empty()).then(|| arguments.positional.remove(0))
}

/// Returns the name of a filter or test.
fn name_of(value: &Value) -> Result<&str> {
    value.expect_str()
}

pub fn map(_: &str, value: &Value, mut arguments: Arguments, machine: &Machine) -> Result<Value> {
    let budget = &machine.budget;
    if !value.is_true() {
        return Ok(Value::iterator(Vec::new()));
    }
    let items = value.items(budget)?;
    budget.list(items.len())?;
    let results = if arguments.positional.is_empty() {
        let mut named = mem::take(&mut arguments.named);
        let mut take = |name: &str| {
            let at = named.iter().position(|(other, _)| other == name)?;
            Some(named.remove(at).1)
        };
        let (attribute, default) = (take("attribute"), take("default"));
        if let Some((name, _)) = named.first() {
            return failed(format!("Unexpected keyword argument '{name}'"));
        }
        let Some(attribute) = attribute else {
            return failed("map requires a filter argument");
        };
        let path =
            Path::new(Some(&attribute), default.filter(|default| !default.is_none()), budget)?;
        items.iter().map(|item| path.get(item, budget)).collect::<Result<_>>()?
    } else {
        let filter = take_first(&mut arguments).unwrap_or(Value::None);
        let filter = name_of(&filter)?.to_owned();
        let mut results = Vec::with_capacity(items.len());
        for item in &items {
            budget.spend(1)?;
            results.push(super::call(&filter, item, arguments.clone(), machine)?);
        }
        results
    };
    Ok(Value::iterator(results))
}

/// Implements `select` and `reject`.
pub fn select(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    filtered(value, &Path::new(None, None, &machine.budget)?, arguments, name == "select", machine)
}

/// Implements `selectattr` and `rejectattr`.
pub fn select_attribute(
    name: &str,
    value: &Value,
    mut arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    let Some(attribute) = take_first(&mut arguments) else {
        return failed("Missing parameter for attribute name");
    };
    let path = Path::new(Some(&attribute), None, &machine.budget)?;
    filtered(value, &path, arguments, name == "selectattr", machine)
}

/// Returns the items whose attribute passes a test, or those that do not.
fn filtered(
    value: &Value,
    path: &Path,
    mut arguments: Arguments,
    passing: bool,
    machine: &Machine,
) -> Result<Value> {
    let budget = &machine.budget;
    if !value.is_true() {
        return Ok(Value::iterator(Vec::new()));
    }
    let test = take_first(&mut arguments);
    let test = test.as_ref().map(name_of).transpose()?;
    let mut selected = Vec::new();
    for item in value.items(budget)? {
        budget.spend(1)?;
        let attribute = path.get(&item, budget)?;
        let passes = match test {
            None => attribute.is_true(),
            Some("filter") => attribute.as_str().is_some_and(super::exists),
            Some(test) => tests::call(test, &attribute, arguments.clone(), budget)?,
        };
        if passes == passing {
            selected.push(item);
        }
    }
    Ok(Value::iterator(selected))
}
