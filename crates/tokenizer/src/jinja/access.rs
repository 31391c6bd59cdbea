//! Attributes and items, within the rules of jinja2's immutable sandbox: attributes that begin with
//! an underscore and methods that change a list or a dictionary are undefined.

use std::rc::Rc;

use super::budget::Budget;
use super::error::{Result, failed};
use super::value::{Value, repr_text};

/// Bytes of a name in a message.
const MAX_SHOWN: usize = 100;

const TEXT_METHODS: [&str; 46] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];
const MARKUP_METHODS: [&str; 3] = ["escape", "striptags", "unescape"];
const LIST_METHODS: [&str; 3] = ["copy", "count", "index"];
const DICT_METHODS: [&str; 6] = ["copy", "fromkeys", "get", "items", "keys", "values"];
const SEQUENCE_METHODS: [&str; 2] = ["count", "index"];
const INT_METHODS: [&str; 4] = ["as_integer_ratio", "bit_count", "bit_length", "conjugate"];
const FLOAT_METHODS: [&str; 4] = ["as_integer_ratio", "conjugate", "hex", "is_integer"];
const VIEW_METHODS: [&str; 1] = ["isdisjoint"];

fn methods(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Text(_) => &TEXT_METHODS,
        Value::List(_) => &LIST_METHODS,
        Value::Dict(_) => &DICT_METHODS,
        Value::Tuple(_) | Value::Range(_) => &SEQUENCE_METHODS,
        Value::Int(_) | Value::Bool(_) => &INT_METHODS,
        Value::Float(_) => &FLOAT_METHODS,
        Value::View(..) => &VIEW_METHODS,
        _ => &[],
    }
}

/// Returns an attribute in the sense of Python; items are not attributes.
pub fn python_attribute(value: &Value, name: &str) -> Option<Value> {
    let method =
        methods(value).iter().chain(if value.is_markup() { &MARKUP_METHODS[..] } else { &[] });
    if let Some(method) = method.copied().find(|method| *method == name) {
        return Some(Value::Method(Rc::new((value.clone(), method))));
    }
    match (value, name) {
        (Value::Object(object), _) => object.attribute(name),
        (Value::Namespace(names), _) => names.borrow().of_name(name).cloned(),
        (Value::Int(_) | Value::Bool(_), "real" | "numerator") => value.as_int().map(Value::Int),
        (Value::Int(_) | Value::Bool(_), "imag") => Some(Value::Int(0)),
        (Value::Int(_) | Value::Bool(_), "denominator") => Some(Value::Int(1)),
        (Value::Float(_), "real") => Some(value.clone()),
        (Value::Float(_), "imag") => Some(Value::Float(0.0)),
        (Value::Group(group), "grouper") => Some(group[0].clone()),
        (Value::Group(group), "list") => Some(group[1].clone()),
        (Value::Range(range), "start") => Some(Value::Int(range.start)),
        (Value::Range(range), "stop") => Some(Value::Int(range.stop)),
        (Value::Range(range), "step") => Some(Value::Int(range.step)),
        _ => None,
    }
}

/// Returns `value.name`: the attribute, else the item.
pub fn attribute(value: &Value, name: &str, budget: &Budget) -> Result<Value> {
    value.defined()?;
    if let Some(found) = python_attribute(value, name) {
        return Ok(found);
    }
    Ok(match python_item(value, &Value::text(name), budget)? {
        Some(item) if !name.starts_with("__") => item,
        _ => missing_attribute(value, name),
    })
}

/// Returns `value[index]`: the item, else the attribute of this name.
pub fn item(value: &Value, index: &Value, budget: &Budget) -> Result<Value> {
    budget.spend(1)?;
    index.pay(budget)?;
    value.defined()?;
    if let Some(item) = python_item(value, index, budget)? {
        return Ok(item);
    }
    if let Some(found) = index.as_str().and_then(|name| python_attribute(value, name)) {
        return Ok(found);
    }
    Ok(match index.as_str() {
        Some(name) => missing_attribute(value, name),
        None => Value::undefined(format!("{} object has no such element", value.type_name())),
    })
}

/// Returns the undefined value of an attribute that a value does not have.
pub fn missing_attribute(value: &Value, name: &str) -> Value {
    let shown = &name[..name.floor_char_boundary(MAX_SHOWN)];
    let (kind, shown) = (value.type_name(), repr_text(shown));
    Value::undefined(format!("'{kind} object' has no attribute {shown}"))
}

/// Returns an item in the sense of Python, or `None` if there is none.
fn python_item(value: &Value, index: &Value, budget: &Budget) -> Result<Option<Value>> {
    if let Value::Dict(dict) = value {
        return Ok(dict.get(index, budget).unwrap_or_default().cloned());
    }
    let Some(index) = index.as_int() else { return Ok(None) };
    Ok(match value {
        Value::List(items) | Value::Tuple(items) => {
            place(index, items.len()).map(|place| items[place].clone())
        }
        Value::Group(items) => place(index, 2).map(|place| items[place].clone()),
        Value::Range(range) => place(index, range.len()).map(|place| Value::Int(range.get(place))),
        Value::Text(text) => {
            budget.text(text.text.len())?;
            let len = if index < 0 { text.text.chars().count() } else { usize::MAX };
            let char = place(index, len).and_then(|place| text.text.chars().nth(place));
            char.map(|char| Value::markup(char.to_string(), text.is_markup))
        }
        _ => None,
    })
}

/// Returns the place of an index that may count from the end.
fn place(index: i128, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(len as i128)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

/// Bounds of a slice of `len` elements: start, stop and step as in Python.
pub fn slice_bounds(
    [start, stop, step]: [Option<i128>; 3],
    len: usize,
) -> Result<(i128, i128, i128)> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return failed("slice step cannot be zero");
    }
    let len = len as i128;
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let bound = |index: i128| {
        let index = if index < 0 { index.saturating_add(len) } else { index };
        index.clamp(low, high)
    };
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    Ok((start.map_or(first, bound), stop.map_or(last, bound), step))
}

/// Returns the places of a slice of `len` elements.
fn slice_places(parts: [Option<i128>; 3], len: usize) -> Result<impl Iterator<Item = usize>> {
    let (start, stop, step) = slice_bounds(parts, len)?;
    let places = std::iter::successors(Some(start), move |place| place.checked_add(step));
    let within = move |place: &i128| if step > 0 { *place < stop } else { *place > stop };
    Ok(places.take_while(within).map(|place| place as usize))
}

/// Returns `value[start:stop:step]`.
pub fn slice(value: &Value, parts: [Option<i128>; 3], budget: &Budget) -> Result<Value> {
    value.defined()?;
    Ok(match value {
        Value::Text(text) => {
            budget.text(text.text.len())?;
            let part: String = if parts[2].is_none() && text.text.is_ascii() {
                let (start, stop, _) = slice_bounds(parts, text.text.len())?;
                text.text[start as usize..(stop as usize).max(start as usize)].to_owned()
            } else {
                budget.text(text.text.len().saturating_mul(4))?;
                let chars: Vec<char> = text.text.chars().collect();
                slice_places(parts, chars.len())?.map(|place| chars[place]).collect()
            };
            Value::markup(part, text.is_markup)
        }
        Value::List(items) | Value::Tuple(items) => {
            budget.list(items.len())?;
            let places = slice_places(parts, items.len())?;
            let items = places.map(|place| items[place].clone()).collect();
            if matches!(value, Value::List(_)) { Value::list(items) } else { Value::tuple(items) }
        }
        Value::Range(range) => {
            let (start, stop, step) = slice_bounds(parts, range.len())?;
            match range.slice(start, stop, step) {
                Some(range) => Value::Range(range),
                None => return failed("Range too big."),
            }
        }
        other => return failed(format!("'{}' object cannot be sliced", other.type_name())),
    })
}
