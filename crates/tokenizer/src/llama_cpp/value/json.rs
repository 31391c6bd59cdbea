//! JSON as `tojson` writes it.

use super::number::float_json;
use super::{MAX_DEPTH, Value, text_of};
use crate::jinja::Budget;
use crate::llama_cpp::result::{Result, failed};

/// Separators and indentation of JSON.
#[derive(Clone, Debug)]
pub struct JsonStyle {
    /// Spaces of a level; negative without line breaks.
    pub indent: i64,
    pub item: Vec<u8>,
    pub key: Vec<u8>,
}

impl Default for JsonStyle {
    fn default() -> Self {
        Self { indent: -1, item: b", ".to_vec(), key: b": ".to_vec() }
    }
}

/// Writes a value as JSON; what has no form in JSON is `null`.
pub fn to_json(value: &Value, style: &JsonStyle, out: &mut Vec<u8>, budget: &Budget) -> Result<()> {
    write(value, style, out, budget, 0)
}

fn write(
    value: &Value,
    style: &JsonStyle,
    out: &mut Vec<u8>,
    budget: &Budget,
    level: usize,
) -> Result<()> {
    if level > MAX_DEPTH {
        return failed("a value is nested too deeply for JSON");
    }
    budget.spend(1)?;
    match value {
        Value::Bool(value) => out.extend(if *value { &b"true"[..] } else { b"false" }),
        Value::Int(value) => out.extend(value.to_string().bytes()),
        Value::Float(value) => out.extend(float_json(*value).bytes()),
        Value::Text(text) => {
            budget.text(text.bytes.len())?;
            quote(&text.bytes, out);
        }
        Value::List(list) => {
            let items = list.items.borrow();
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                begin(style, out, budget, level, i == 0)?;
                write(item, style, out, budget, level + 1)?;
                end(style, out, budget, i + 1 == items.len())?;
            }
            close(style, out, budget, level, items.is_empty())?;
            out.push(b']');
        }
        Value::Dict(dict) => {
            let entries = dict.entries();
            out.push(b'{');
            for (i, (key, value)) in entries.iter().enumerate() {
                begin(style, out, budget, level, i == 0)?;
                quote(&text_of(key, budget)?.bytes, out);
                budget.text(style.key.len())?;
                out.extend_from_slice(&style.key);
                write(value, style, out, budget, level + 1)?;
                end(style, out, budget, i + 1 == entries.len())?;
            }
            close(style, out, budget, level, entries.is_empty())?;
            out.push(b'}');
        }
        Value::None | Value::Undefined(_) | Value::Function(_) | Value::Keyword(_) => {
            out.extend(b"null");
        }
    }
    Ok(())
}

fn spaces(style: &JsonStyle, out: &mut Vec<u8>, budget: &Budget, levels: usize) -> Result<()> {
    let count = usize::try_from(style.indent.max(0)).unwrap_or(0).saturating_mul(levels);
    budget.text(count)?;
    out.resize(out.len() + count, b' ');
    Ok(())
}

fn begin(
    style: &JsonStyle,
    out: &mut Vec<u8>,
    budget: &Budget,
    level: usize,
    is_first: bool,
) -> Result<()> {
    if is_first && style.indent >= 0 {
        out.push(b'\n');
    }
    spaces(style, out, budget, level + 1)
}

fn end(style: &JsonStyle, out: &mut Vec<u8>, budget: &Budget, is_last: bool) -> Result<()> {
    if !is_last {
        budget.text(style.item.len())?;
        out.extend_from_slice(&style.item);
    }
    if style.indent >= 0 {
        out.push(b'\n');
    }
    Ok(())
}

fn close(
    style: &JsonStyle,
    out: &mut Vec<u8>,
    budget: &Budget,
    level: usize,
    is_empty: bool,
) -> Result<()> {
    if is_empty { Ok(()) } else { spaces(style, out, budget, level) }
}

fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend(b"\\\""),
            b'\\' => out.extend(b"\\\\"),
            0x08 => out.extend(b"\\b"),
            0x0c => out.extend(b"\\f"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0..0x20 => out.extend(format!("\\u{byte:04x}").bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}
