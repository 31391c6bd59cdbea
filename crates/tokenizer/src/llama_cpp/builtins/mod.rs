//! Functions, tests, filters and methods (`common/jinja/value.cpp`). Filters and methods are the same functions, which
//! differ by the type of the value.

mod arguments;
mod dict;
mod global;
mod list;
mod number;
mod tests;
mod text;
mod undefined;

pub use arguments::Call;

use super::machine::Machine;
use super::result::{Result, failed};
use super::value::{Code, JsonStyle, Value, text_of, to_json};
use crate::jinja::Budget;

/// A function in Rust.
pub type Builtin = fn(&Call<'_>) -> Result<Value>;

/// Functions by their names.
type Table = &'static [(&'static str, Builtin)];

/// A function of a table, as the code of a value.
#[derive(Clone, Copy, Debug)]
pub struct Native(pub Builtin);

impl Code for Native {}

fn find(table: Table, name: &str) -> Option<Builtin> {
    table.iter().find(|(other, _)| *other == name).map(|(_, function)| *function)
}

/// Returns the filter or method of this name of a value, or fails if the value has none at all.
pub fn method(value: &Value, name: &str) -> Result<Option<Builtin>> {
    let table = match value {
        Value::Undefined(_) => undefined::UNDEFINED,
        Value::None => undefined::NONE,
        Value::Bool(_) => number::BOOL,
        Value::Int(_) => number::INT,
        Value::Float(_) => number::FLOAT,
        Value::Text(_) => text::TEXT,
        Value::List(_) => list::LIST,
        Value::Dict(dict) if !dict.has_methods => &[],
        Value::Dict(_) => dict::DICT,
        Value::Function(_) | Value::Keyword(_) => {
            return failed(format!("{} has no builtins", value.type_name()));
        }
    };
    Ok(find(table, name))
}

/// Returns the global function of this name.
pub fn global(name: &str) -> Option<Builtin> {
    find(global::FUNCTIONS, name).or_else(|| name.strip_prefix("test_is_").and_then(test))
}

/// Returns the test of this name.
pub fn test(name: &str) -> Option<Builtin> {
    find(tests::TESTS, name)
}

/// Fails: llama.cpp knows the name, and says that the function is not implemented.
fn not_implemented(call: &Call<'_>) -> Result<Value> {
    failed(format!("{} is not implemented", call.name))
}

fn default(call: &Call<'_>) -> Result<Value> {
    call.count(2, 3)?;
    let value = call.at(0)?;
    let replaces = match call.keyword_or("boolean", 2).is_true()? {
        true => !value.is_true()?,
        false => value.is_undefined() || value.is_none(),
    };
    if replaces { call.at(1) } else { Ok(value) }
}

fn tojson(call: &Call<'_>) -> Result<Value> {
    call.count(1, 5)?;
    let value = call.at(0)?;
    call.machine.mark_all(&value);
    let mut style = JsonStyle::default();
    if let Value::Int(indent) = call.keyword_or("indent", 2) {
        style.indent = i64::from(indent as i32);
        if style.indent >= 0 {
            style.item = b",".to_vec();
        }
    }
    if call.keyword_or("sort_keys", 4).is_true()? {
        return failed("tojson sort_keys=true is not implemented");
    }
    let is_ascii = call.keyword_or("ensure_ascii", 1).is_true()?;
    if let Value::List(separators) = call.keyword_or("separators", 3) {
        let separators = separators.items.borrow();
        if let Some(item) = separators.first() {
            style.item = text_of(item, &call.machine.budget)?.bytes.clone();
        }
        if let Some(key) = separators.get(1) {
            style.key = text_of(key, &call.machine.budget)?.bytes.clone();
        }
    }
    let mut out = Vec::new();
    to_json(&value, &style, &mut out, &call.machine.budget)?;
    Ok(Value::text(if is_ascii { escaped(&out) } else { out }))
}

/// Escapes characters outside ASCII in the strings of JSON.
fn escaped(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    for char in String::from_utf8_lossy(json).chars() {
        if char.is_ascii() {
            out.push(char as u8);
        } else {
            let mut units = [0; 2];
            for unit in char.encode_utf16(&mut units) {
                out.extend(format!("\\u{unit:04x}").bytes());
            }
        }
    }
    out
}

/// Attribute of a dictionary, or element of a list, for filters; undefined if there is none.
fn attribute(value: &Value, name: &Value, otherwise: &Value, budget: &Budget) -> Result<Value> {
    let found = match value {
        _ if name.is_undefined() => None,
        Value::List(list) => {
            let digits = match name {
                Value::Text(text) => std::str::from_utf8(&text.bytes)
                    .ok()
                    .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit())),
                _ => None,
            };
            let index = match (name, digits) {
                (Value::Int(_) | Value::Bool(_), _) => Some(name.as_int()?),
                (_, Some(digits)) => digits.parse().ok(),
                _ => None,
            };
            let items = list.items.borrow();
            index.and_then(|index| place(index, items.len())).map(|place| items[place].clone())
        }
        Value::Dict(dict) => dict.get(name, budget)?,
        _ => None,
    };
    Ok(found.unwrap_or_else(|| otherwise.clone()))
}

/// Returns the place of an index that may count from the end.
pub fn place(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add_unsigned(len as u64)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

/// Returns the places of a slice of `len` elements.
fn slice(call: &Call<'_>, len: usize) -> Result<Vec<usize>> {
    call.count(1, 4)?;
    let Value::Int(start) = call.at(1)? else { return call.expected("an integer", &call.at(1)?) };
    let number = |at: usize| call.at_or(at).as_int();
    let stop = number(2)?;
    let step = if call.arguments.len() == 2 { 1 } else { number(3)? };
    if step == 0 {
        return failed("slice step cannot be zero");
    }
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let bound = |index: i64, low: i64, high: i64, from_end: bool| match from_end {
        true => index.saturating_add(len).max(low),
        false => index.min(high),
    };
    let (mut at, stop) = match step > 0 {
        true => (bound(start, 0, len, start < 0), bound(stop, 0, len, stop < 0)),
        false => (bound(start, 0, len - 1, start < 0), bound(stop, -1, len - 1, stop < -1)),
    };
    let mut places = Vec::new();
    while if step > 0 { at < stop } else { at > stop } {
        if let Some(place) = usize::try_from(at).ok().filter(|_| at < len) {
            places.push(place);
        }
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    call.machine.budget.list(places.len())?;
    Ok(places)
}

/// Functions that return an empty value, for undefined values and `None`.
fn empty_list(_: &Call<'_>) -> Result<Value> {
    Ok(Value::list(Vec::new()))
}

/// Takes the steps for a text and returns it.
fn paid(machine: &Machine, text: Vec<u8>) -> Result<Value> {
    machine.budget.text(text.len())?;
    Ok(Value::text(text))
}
