//! The filter `tojson`: writes JSON as Python's `json.dumps(value, ensure_ascii=False)`.

use std::fmt::Write;

use super::super::arguments::{Arguments, flag, optional};
use super::super::budget::Budget;
use super::super::error::{Result, failed};
use super::super::machine::Machine;
use super::super::methods;
use super::super::value::{MAX_DEPTH, Value, float_repr};

pub fn tojson(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let names = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let [ascii, indent, separators, sort] = arguments.bind(name, names)?;
    let indent = match optional(indent) {
        None => None,
        Some(Value::Text(text)) => Some(text.text.to_string()),
        Some(other) => {
            let width = usize::try_from(other.expect_int()?.max(0)).unwrap_or(usize::MAX);
            machine.budget.text(width)?;
            Some(" ".repeat(width))
        }
    };
    let (between, after_key) = match optional(separators) {
        Some(pair) => match &pair.items(&machine.budget)?[..] {
            [between, after_key] => {
                (between.expect_str()?.to_owned(), after_key.expect_str()?.to_owned())
            }
            _ => return failed("separators must be a pair of strings"),
        },
        None => (if indent.is_some() { "," } else { ", " }.into(), ": ".into()),
    };
    let mut writer = Writer {
        out: String::new(),
        ascii: flag(ascii),
        sort: flag(sort),
        indent,
        between,
        after_key,
        budget: &machine.budget,
    };
    writer.value(value, 0)?;
    Ok(Value::text(writer.out))
}

struct Writer<'a> {
    out: String,
    ascii: bool,
    sort: bool,
    indent: Option<String>,
    between: String,
    after_key: String,
    budget: &'a Budget,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        self.budget.spend(1)?;
        match value {
            Value::None => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            // Writing to a string cannot fail.
            Value::Int(value) => drop(write!(self.out, "{value}")),
            Value::Float(value) => self.out.push_str(&float(*value)),
            Value::Text(text) => self.text(&text.text)?,
            Value::List(items) | Value::Tuple(items) => self.list(items, depth)?,
            Value::Group(items) => self.list(&items[..], depth)?,
            Value::Dict(_) => self.object(value, depth)?,
            other => {
                return failed(format!(
                    "Object of type {} is not JSON serializable",
                    other.type_name()
                ));
            }
        }
        Ok(())
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Result<()> {
        self.out.push('[');
        for (i, item) in items.iter().enumerate() {
            self.item(i == 0, depth)?;
            self.value(item, depth + 1)?;
        }
        self.end(']', items.is_empty(), depth)
    }

    fn object(&mut self, object: &Value, depth: usize) -> Result<()> {
        self.out.push('{');
        let Value::Dict(dict) = object else { return Ok(()) };
        let mut keys: Vec<Value> = dict.keys().cloned().collect();
        if self.sort {
            let pairs = keys.into_iter().map(|key| (key.clone(), key)).collect();
            keys = methods::sort(pairs, false, self.budget)?;
        }
        for (i, key) in keys.iter().enumerate() {
            self.item(i == 0, depth)?;
            match key {
                Value::Text(text) => self.text(&text.text)?,
                Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                    self.out.push('"');
                    self.value(key, depth + 1)?;
                    self.out.push('"');
                }
                other => {
                    return failed(format!(
                        "keys must be str, int, float, bool or None, not {}",
                        other.type_name()
                    ));
                }
            }
            self.budget.text(self.after_key.len())?;
            self.out.push_str(&self.after_key);
            if let Some(value) = dict.get(key, self.budget)? {
                self.value(value, depth + 1)?;
            }
        }
        self.end('}', keys.is_empty(), depth)
    }

    /// Writes the separator and indentation before an item of a container.
    fn item(&mut self, is_first: bool, depth: usize) -> Result<()> {
        if depth >= MAX_DEPTH {
            return failed(format!("value has more than {MAX_DEPTH} levels"));
        }
        if !is_first {
            self.budget.text(self.between.len())?;
            self.out.push_str(&self.between);
        }
        self.line(depth + 1)
    }

    fn end(&mut self, close: char, is_empty: bool, depth: usize) -> Result<()> {
        if !is_empty {
            self.line(depth)?;
        }
        self.out.push(close);
        Ok(())
    }

    fn line(&mut self, depth: usize) -> Result<()> {
        if let Some(indent) = &self.indent {
            self.budget.text(depth.saturating_mul(indent.len()))?;
            self.out.push('\n');
            (0..depth).for_each(|_| self.out.push_str(indent));
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.budget.text(text.len())?;
        self.out.push('"');
        for char in text.chars() {
            match char {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                char if char < ' ' || (self.ascii && char > '~') => {
                    for unit in char.encode_utf16(&mut [0; 2]) {
                        // Writing to a string cannot fail.
                        let _ = write!(self.out, "\\u{unit:04x}");
                    }
                }
                char => self.out.push(char),
            }
        }
        self.out.push('"');
        Ok(())
    }
}

fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    float_repr(value)
}
