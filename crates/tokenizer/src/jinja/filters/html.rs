//! Filters for HTML and URLs.

use std::fmt::Write;

use super::super::arguments::Arguments;
use super::super::budget::Budget;
use super::super::error::{Result, failed};
use super::super::machine::Machine;
use super::super::markup::{self, escape_text, strip_tags};
use super::super::syntax::is_space;
use super::super::value::{Value, text_of};

pub fn escape(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    Ok(Value::markup(markup::escape(value, &machine.budget)?, true))
}

pub fn forceescape(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    arguments.none(name)?;
    let text = text_of(value, &machine.budget)?;
    machine.budget.text(text.len())?;
    Ok(Value::markup(escape_text(&text), true))
}

pub fn safe(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    Ok(Value::markup(text_of(value, &machine.budget)?, true))
}

pub fn striptags(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    arguments.none(name)?;
    let text = text_of(value, &machine.budget)?;
    machine.budget.text(text.len())?;
    Ok(Value::text(strip_tags(&text)))
}

pub fn xmlattr(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    let [autospace] = arguments.bind(name, ["autospace"])?;
    let Value::Dict(dict) = value else {
        value.defined()?;
        return failed(format!("'{}' object has no attribute 'items'", value.type_name()));
    };
    let mut out = String::new();
    for (key, value) in dict.iter() {
        if value.is_none() || value.is_undefined() {
            continue;
        }
        let invalid = |char: char| is_space(char) || "/>=".contains(char);
        if key.expect_str()?.contains(invalid) {
            return failed(format!("Invalid character in attribute name: {:?}", key.as_str()));
        }
        let (key, value) =
            (markup::escape(key, &machine.budget)?, markup::escape(value, &machine.budget)?);
        // Writing to a string cannot fail.
        let _ = write!(out, "{}{key}=\"{value}\"", if out.is_empty() { "" } else { " " });
    }
    if !out.is_empty() && autospace.is_none_or(|autospace| autospace.is_true()) {
        out.insert(0, ' ');
    }
    Ok(Value::markup(out, machine.autoescape.get()))
}

/// Encodes a text for URLs; in a query a space is a plus, and a slash is encoded.
fn quote(value: &Value, in_query: bool, budget: &Budget) -> Result<String> {
    let text = text_of(value, budget)?;
    budget.text(text.len())?;
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            b'/' if !in_query => out.push('/'),
            b' ' if in_query => out.push('+'),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    Ok(out)
}

pub fn urlencode(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    arguments.none(name)?;
    let budget = &machine.budget;
    let pairs = match value {
        Value::Dict(dict) => {
            dict.iter().map(|(key, value)| [key.clone(), value.clone()]).collect::<Vec<_>>()
        }
        Value::Text(_) => return Ok(Value::text(quote(value, false, budget)?)),
        other if !super::super::tests::is_iterable(other) => {
            return Ok(Value::text(quote(value, false, budget)?));
        }
        other => {
            let mut pairs = Vec::new();
            for pair in other.items(budget)? {
                match <[Value; 2]>::try_from(pair.items(budget)?) {
                    Ok(pair) => pairs.push(pair),
                    Err(_) => return failed("urlencode needs pairs of names and values"),
                }
            }
            pairs
        }
    };
    let mut out = String::new();
    for [key, value] in pairs {
        if !out.is_empty() {
            out.push('&');
        }
        out.push_str(&quote(&key, true, budget)?);
        out.push('=');
        out.push_str(&quote(&value, true, budget)?);
    }
    Ok(Value::text(out))
}
