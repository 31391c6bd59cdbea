//! Texts of values: `str` and `repr` of Python.

use std::fmt::Write;
use std::rc::Rc;

use unicode_categories::UnicodeCategories;

use super::{MAX_DEPTH, Text, Value, ViewKind, float_repr};
use crate::jinja::budget::Budget;
use crate::jinja::error::{Result, failed};

/// Returns `str(value)`.
pub fn text_of(value: &Value, budget: &Budget) -> Result<Rc<str>> {
    Ok(match value {
        Value::Text(text) => Rc::clone(&text.text),
        Value::Undefined(_) => "".into(),
        other => repr(other, budget)?.into(),
    })
}

/// Returns `repr(value)`.
pub fn repr(value: &Value, budget: &Budget) -> Result<String> {
    let mut out = String::new();
    write_repr(&mut out, value, budget, 0)?;
    Ok(out)
}

fn write_repr(out: &mut String, value: &Value, budget: &Budget, depth: usize) -> Result<()> {
    budget.spend(1)?;
    let start = out.len();
    if depth > MAX_DEPTH {
        return failed("maximum recursion depth exceeded while getting the repr of an object");
    }
    let list = |out: &mut String, items: &mut dyn Iterator<Item = &Value>| {
        for (i, item) in items.enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            write_repr(out, item, budget, depth + 1)?;
        }
        Ok(())
    };
    match value {
        Value::Undefined(_) => out.push_str("Undefined"),
        Value::None => out.push_str("None"),
        Value::Bool(value) => out.push_str(if *value { "True" } else { "False" }),
        // Writing to a string cannot fail.
        Value::Int(value) => drop(write!(out, "{value}")),
        Value::Float(value) => out.push_str(&float_repr(*value)),
        Value::Text(Text { text, is_markup }) => {
            budget.text(text.len())?;
            let text = repr_text(text);
            budget.text(text.len())?;
            if *is_markup {
                let _ = write!(out, "Markup({text})");
            } else {
                out.push_str(&text);
            }
        }
        Value::List(items) => {
            out.push('[');
            list(out, &mut items.iter())?;
            out.push(']');
        }
        Value::Tuple(items) => {
            out.push('(');
            list(out, &mut items.iter())?;
            out.push_str(if items.len() == 1 { ",)" } else { ")" });
        }
        Value::Group(items) => {
            out.push('(');
            list(out, &mut items.iter())?;
            out.push(')');
        }
        Value::Dict(dict) => {
            out.push('{');
            for (i, (key, value)) in dict.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_repr(out, key, budget, depth + 1)?;
                out.push_str(": ");
                write_repr(out, value, budget, depth + 1)?;
            }
            out.push('}');
        }
        Value::View(dict, kind) => {
            let _ = write!(out, "{}([", value.type_name());
            match kind {
                ViewKind::Keys => list(out, &mut dict.keys())?,
                ViewKind::Values => list(out, &mut dict.values())?,
                ViewKind::Items => {
                    for (i, (key, value)) in dict.iter().enumerate() {
                        out.push_str(if i > 0 { ", (" } else { "(" });
                        list(out, &mut [key, value].into_iter())?;
                        out.push(')');
                    }
                }
            }
            out.push_str("])");
        }
        Value::Range(range) => out.push_str(&range.repr()),
        Value::Iterator(_) => out.push_str("<generator object>"),
        Value::Namespace(names) => {
            out.push_str("<Namespace {");
            for (i, (name, value)) in names.borrow().iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, name, budget, depth + 1)?;
                out.push_str(": ");
                write_repr(out, value, budget, depth + 1)?;
            }
            out.push_str("}>");
        }
        Value::Method(method) => {
            let (receiver, name) = &**method;
            let _ = write!(out, "<built-in method {name} of {} object>", receiver.type_name());
        }
        Value::Object(object) => {
            out.push_str(&object.repr());
            budget.text(out.len() - start)?;
        }
    }
    Ok(())
}

/// Returns `repr` of a string: in single quotes unless it has some but no double ones.
pub fn repr_text(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for char in text.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if char == quote => {
                out.push('\\');
                out.push(char);
            }
            _ if is_printable(char) => out.push(char),
            _ => {
                let code = char as u32;
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// Whether Python counts a character as printable.
pub fn is_printable(char: char) -> bool {
    matches!(char, ' '..='~') || !char.is_ascii() && !char.is_other() && !char.is_separator()
}
