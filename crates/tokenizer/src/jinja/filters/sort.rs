//! Filters that order.

use std::collections::HashSet;

use super::super::arguments::{Arguments, flag, optional, required};
use super::super::error::{Result, failed};
use super::super::machine::Machine;
use super::super::methods;
use super::super::value::{Key, Value, equal, less};
use super::attribute::{Path, folded};

pub fn sorted(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let budget = &machine.budget;
    let [reverse, case_sensitive, attribute] =
        arguments.bind(name, ["reverse", "case_sensitive", "attribute"])?;
    let case_sensitive = flag(case_sensitive);
    let paths = match optional(attribute) {
        Some(Value::Text(text)) => {
            budget.list(text.text.matches(',').count().saturating_mul(4))?;
            text.text
                .split(',')
                .map(|part| Path::new(Some(&Value::text(part)), None, budget))
                .collect::<Result<Vec<_>>>()?
        }
        other => vec![Path::new(other.as_ref(), None, budget)?],
    };
    let mut items = Vec::new();
    for item in value.items(budget)? {
        let key = |path: &Path| {
            budget.spend(1)?;
            path.key(&item, case_sensitive, budget)
        };
        items.push((Value::list(paths.iter().map(key).collect::<Result<_>>()?), item));
    }
    budget.list(items.len())?;
    Ok(Value::list(methods::sort(items, flag(reverse), budget)?))
}

pub fn dictsort(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    let [case_sensitive, by, reverse] =
        arguments.bind(name, ["case_sensitive", "by", "reverse"])?;
    let by_value = match by.as_ref().map_or(Some("key"), Value::as_str) {
        Some("key") => false,
        Some("value") => true,
        _ => return failed("You can only sort by either \"key\" or \"value\""),
    };
    let Value::Dict(dict) = value else {
        value.defined()?;
        return failed(format!("'{}' object has no attribute 'items'", value.type_name()));
    };
    machine.budget.list(dict.len())?;
    let case_sensitive = flag(case_sensitive);
    let pair = |(key, value): (&Value, &Value)| {
        let by = if by_value { value } else { key };
        let pair = Value::tuple(vec![key.clone(), value.clone()]);
        (folded(by.clone(), case_sensitive), pair)
    };
    let pairs = dict.iter().map(pair).collect();
    Ok(Value::list(methods::sort(pairs, flag(reverse), &machine.budget)?))
}

pub fn groupby(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    let budget = &machine.budget;
    let [attribute, default, case_sensitive] =
        arguments.bind(name, ["attribute", "default", "case_sensitive"])?;
    let path = Path::new(Some(&required(attribute, name)?), optional(default), budget)?;
    let case_sensitive = flag(case_sensitive);
    let mut items = Vec::new();
    for item in value.items(budget)? {
        items.push((path.key(&item, case_sensitive, budget)?, item));
    }
    budget.list(items.len())?;
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for item in methods::sort(items, false, budget)? {
        let key = path.key(&item, case_sensitive, budget)?;
        match groups.last_mut() {
            Some((last, group)) if equal(last, &key, budget)? => group.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    let mut out = Vec::new();
    for (key, group) in groups {
        let key = if case_sensitive { key } else { path.get(&group[0], budget)? };
        out.push(Value::Group(std::rc::Rc::new([key, Value::list(group)])));
    }
    Ok(Value::list(out))
}

pub fn unique(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let budget = &machine.budget;
    let [case_sensitive, attribute] = arguments.bind(name, ["case_sensitive", "attribute"])?;
    let (case_sensitive, path) =
        (flag(case_sensitive), Path::new(optional(attribute).as_ref(), None, budget)?);
    let mut seen = HashSet::new();
    let mut items = Vec::new();
    for item in value.items(budget)? {
        budget.spend(1)?;
        if seen.insert(Key::of(&path.key(&item, case_sensitive, budget)?, budget)?) {
            items.push(item);
        }
    }
    Ok(Value::iterator(items))
}

/// Implements `min` and `max`.
pub fn extreme(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    let budget = &machine.budget;
    let [case_sensitive, attribute] = arguments.bind(name, ["case_sensitive", "attribute"])?;
    let (case_sensitive, path) =
        (flag(case_sensitive), Path::new(optional(attribute).as_ref(), None, budget)?);
    let mut best: Option<(Value, Value)> = None;
    for item in value.items(budget)? {
        let key = path.key(&item, case_sensitive, budget)?;
        let is_better = match &best {
            None => true,
            Some((other, _)) if name == "max" => less(other, &key, budget)?,
            Some((other, _)) => less(&key, other, budget)?,
        };
        if is_better {
            best = Some((key, item));
        }
    }
    Ok(match best {
        Some((_, item)) => item,
        None => Value::undefined("No aggregated item, sequence was empty."),
    })
}
