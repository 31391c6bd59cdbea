//! Filters of sequences.

use std::rc::Rc;
use std::time::UNIX_EPOCH;

use super::super::arguments::{Arguments, flag, optional, required};
use super::super::error::{Result, failed};
use super::super::machine::Machine;
use super::super::markup::escape;
use super::super::value::{Value, text_of};
use super::attribute::Path;

pub fn length(name: &str, value: &Value, arguments: Arguments, _: &Machine) -> Result<Value> {
    arguments.none(name)?;
    match value.len() {
        Some(len) => Ok(Value::Int(len as i128)),
        None => failed(format!("object of type '{}' has no len()", value.type_name())),
    }
}

pub fn default(name: &str, value: &Value, arguments: Arguments, _: &Machine) -> Result<Value> {
    let [default, boolean] = arguments.bind(name, ["default_value", "boolean"])?;
    let is_missing = value.is_undefined() || flag(boolean) && !value.is_true();
    Ok(if is_missing { default.unwrap_or_else(|| Value::text("")) } else { value.clone() })
}

pub fn first(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    let first = match value {
        Value::Iterator(items) => items.borrow_mut().pop_front(),
        other => other.items(&machine.budget)?.into_iter().next(),
    };
    Ok(first.unwrap_or_else(|| Value::undefined("No first item, sequence was empty.")))
}

pub fn last(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    let last = reversible(value, machine)?.pop();
    Ok(last.unwrap_or_else(|| Value::undefined("No last item, sequence was empty.")))
}

/// Returns the items of a value that Python can reverse: no iterator.
fn reversible(value: &Value, machine: &Machine) -> Result<Vec<Value>> {
    match value {
        Value::Iterator(_) => failed("'generator' object is not reversible"),
        other => other.items(&machine.budget),
    }
}

pub fn reverse(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    arguments.none(name)?;
    if let Value::Text(text) = value {
        machine.budget.text(text.text.len())?;
        let reversed: String = text.text.chars().rev().collect();
        return Ok(Value::markup(reversed, text.is_markup));
    }
    let is_list = matches!(value, Value::Iterator(_));
    let mut items = value.items(&machine.budget)?;
    machine.budget.list(items.len())?;
    items.reverse();
    Ok(if is_list { Value::list(items) } else { Value::iterator(items) })
}

pub fn list(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    let items = value.items(&machine.budget)?;
    machine.budget.list(items.len())?;
    Ok(Value::list(items))
}

pub fn items(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    match value {
        Value::Undefined(_) => Ok(Value::iterator(Vec::new())),
        Value::Dict(dict) => {
            machine.budget.list(dict.len())?;
            let pair =
                |(key, value): (&Value, &Value)| Value::tuple(vec![key.clone(), value.clone()]);
            Ok(Value::iterator(dict.iter().map(pair).collect()))
        }
        _ => failed("Can only get item pairs from a mapping."),
    }
}

pub fn join(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let budget = &machine.budget;
    let [separator, attribute] = arguments.bind(name, ["d", "attribute"])?;
    let separator = separator.unwrap_or_else(|| Value::text(""));
    let path = Path::new(optional(attribute).as_ref(), None, budget)?;
    let items = value.items(budget)?;
    let items: Vec<_> = items.iter().map(|item| path.get(item, budget)).collect::<Result<_>>()?;
    let is_markup =
        machine.autoescape.get() && (separator.is_markup() || items.iter().any(Value::is_markup));
    let text = |value: &Value| match is_markup {
        true => escape(value, budget),
        false => text_of(value, budget),
    };
    let separator = text(&separator)?;
    let mut out = String::new();
    for (i, item) in items.iter().enumerate() {
        let item: Rc<str> = text(item)?;
        budget.text(item.len() + separator.len())?;
        if i > 0 {
            out.push_str(&separator);
        }
        out.push_str(&item);
    }
    Ok(Value::markup(out, is_markup))
}

/// Returns a positive count of parts.
fn count(value: Option<Value>, name: &str) -> Result<i128> {
    required(value, name)?.expect_int()
}

pub fn batch(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let [line, fill] = arguments.bind(name, ["linecount", "fill_with"])?;
    let line = count(line, name)?;
    let items = value.items(&machine.budget)?;
    machine.budget.list(items.len())?;
    // Python never finds a batch of another length full.
    let len = usize::try_from(line).ok();
    let mut batches = Vec::new();
    let mut batch = Vec::new();
    for item in items {
        if Some(batch.len()) == len {
            batches.push(Value::list(std::mem::take(&mut batch)));
        }
        batch.push(item);
    }
    if let (Some(fill), Some(len)) = (optional(fill), len)
        && !batch.is_empty()
        && batch.len() < len
    {
        machine.budget.list(len)?;
        batch.resize(len, fill);
    }
    if !batch.is_empty() {
        batches.push(Value::list(batch));
    }
    Ok(Value::iterator(batches))
}

pub fn slice(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let [slices, fill] = arguments.bind(name, ["slices", "fill_with"])?;
    let slices = count(slices, name)?;
    let items = value.items(&machine.budget)?;
    if slices == 0 {
        return failed("integer division or modulo by zero");
    }
    let slices = usize::try_from(slices).unwrap_or(0);
    machine.budget.list(items.len().saturating_add(slices))?;
    let fill = optional(fill);
    let mut rest = &items[..];
    let mut parts = Vec::new();
    for i in 0..slices {
        let is_long = i < items.len() % slices;
        let (part, after) = rest.split_at(items.len() / slices + usize::from(is_long));
        rest = after;
        let mut part = part.to_vec();
        part.extend(fill.clone().filter(|_| !is_long));
        parts.push(Value::list(part));
    }
    Ok(Value::iterator(parts))
}

pub fn random(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    if matches!(value, Value::Dict(_) | Value::View(..) | Value::Iterator(_)) {
        return failed(format!("'{}' object is not a sequence", value.type_name()));
    }
    let items = value.items(&machine.budget)?;
    machine.budget.list(items.len())?;
    let time = machine.now.duration_since(UNIX_EPOCH).unwrap_or_default();
    match items.len() {
        0 => Ok(Value::undefined("No random item, sequence was empty.")),
        len => Ok(items[time.subsec_nanos() as usize / 7 % len].clone()),
    }
}
