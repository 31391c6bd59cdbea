//! Global functions.

use std::rc::Rc;

use super::{Call, Table, tojson};
use crate::jinja::{Error, ErrorKind, strftime};
use crate::llama_cpp::result::{Result, failed};
use crate::llama_cpp::value::{Dict, Value};

pub const FUNCTIONS: Table = &[
    ("raise_exception", raise_exception),
    ("dict", dict),
    ("namespace", dict),
    ("strftime_now", strftime_now),
    ("range", range),
    ("tojson", tojson),
];

fn raise_exception(call: &Call<'_>) -> Result<Value> {
    Err(Error::new(ErrorKind::Raised(call.text(0)?.lossy())).into())
}

/// Creates a dictionary; a namespace is one.
fn dict(call: &Call<'_>) -> Result<Value> {
    let dict = Dict::new();
    let first = call.at_or(0);
    let mut has_source = true;
    match &first {
        Value::List(list) => {
            for item in list.items.borrow().iter() {
                let pair = match item {
                    Value::List(pair) => pair.items.borrow().clone(),
                    _ => Vec::new(),
                };
                let Ok([key, value]) = <[Value; 2]>::try_from(pair) else {
                    let found = item.type_name();
                    return failed(format!("{}() takes pairs, got {found}", call.name));
                };
                dict.insert(key, value, &call.machine.budget)?;
            }
        }
        Value::Dict(source) => {
            for (key, value) in source.entries() {
                dict.insert(key, value, &call.machine.budget)?;
            }
        }
        _ => has_source = false,
    }
    for argument in call.arguments.iter().skip(usize::from(has_source)) {
        match argument {
            Value::Keyword(keyword) => dict.set(&keyword.0, keyword.1.clone()),
            other => return call.expected("arguments with names", other),
        }
    }
    Ok(Value::Dict(Rc::new(dict)))
}

fn strftime_now(call: &Call<'_>) -> Result<Value> {
    /// Bytes of the text with its end.
    const ROOM: usize = 100;
    let text = strftime(call.machine.now, &with_zone(&call.text(0)?.lossy()));
    if text.is_empty() || text.len() >= ROOM {
        return failed("strftime_now: failed to format time");
    }
    Ok(Value::text(text))
}

/// Replaces the directives of C whose meaning depends on a time zone, or that only Python has.
fn with_zone(format: &str) -> String {
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let directive: String = rest[at..].chars().take(2).collect();
        rest = &rest[at + directive.len()..];
        out.push_str(match directive.as_str() {
            "%z" => "+0000",
            "%Z" => "UTC",
            "%f" => "%%f",
            other => other,
        });
    }
    out + rest
}

fn range(call: &Call<'_>) -> Result<Value> {
    call.count(1, 3)?;
    let first = call.int(0)?;
    let number = |at: usize| call.at(at).and_then(|value| value.as_int());
    let (start, stop, step) = match call.arguments.len() {
        1 => (0, first, 1),
        2 => (first, number(1)?, 1),
        _ => (first, number(1)?, number(2)?),
    };
    if step == 0 {
        return failed("range() step argument must not be zero");
    }
    let mut items = Vec::new();
    let mut at = start;
    while if step > 0 { at < stop } else { at > stop } {
        call.machine.budget.list(1)?;
        items.push(Value::Int(at));
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    Ok(Value::list(items))
}
