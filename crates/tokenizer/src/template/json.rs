//! The filter `tojson`: writes JSON as Python's `json.dumps(value, ensure_ascii=False)`.

use std::fmt::Write;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// Maximum nesting of lists and objects, about that of Python.
const MAX_DEPTH: usize = 500;

/// Serializes a value to JSON. `options` are those of the filter in transformers: `ensure_ascii`,
/// `indent` (a number of spaces or a string), `separators` and `sort_keys`.
pub fn tojson(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent = match options.get::<Option<Value>>("indent")?.filter(|indent| !indent.is_none()) {
        None => None,
        Some(indent) => Some(match indent.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::from(u8::try_from(indent)?)),
        }),
    };
    let separators = options.get::<Option<Value>>("separators")?.filter(|value| !value.is_none());
    let (between, after_key) = match separators {
        Some(pair) => {
            let part = |i| pair.get_item_by_index(i).map(|part| part.to_string());
            (part(0)?, part(1)?)
        }
        None => (if indent.is_some() { "," } else { ", " }.into(), ": ".into()),
    };
    let mut writer = Writer {
        out: String::new(),
        ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        indent,
        between,
        after_key,
    };
    options.assert_all_used()?;
    writer.value(value, 0)?;
    Ok(writer.out.into())
}

struct Writer {
    out: String,
    ascii: bool,
    sort: bool,
    indent: Option<String>,
    between: String,
    after_key: String,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.number(value)?,
            ValueKind::String => self.text(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth)?,
            ValueKind::Map => self.object(value, depth)?,
            ValueKind::Invalid => return value.try_iter().map(drop),
            other => return Err(unserializable(format!("{other} is not JSON"))),
        }
        Ok(())
    }

    fn list(&mut self, list: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut is_empty = true;
        for item in list.try_iter()?.checked() {
            self.item(is_empty, depth)?;
            is_empty = false;
            self.value(&item?, depth + 1)?;
        }
        self.end(']', is_empty, depth);
        Ok(())
    }

    fn object(&mut self, object: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('{');
        let mut keys: Vec<Value> = object.try_iter()?.checked().collect::<Result<_, _>>()?;
        if self.sort {
            keys.sort();
        }
        for (i, key) in keys.iter().enumerate() {
            self.item(i == 0, depth)?;
            match key.kind() {
                ValueKind::String => self.text(key.as_str().unwrap_or_default()),
                ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                    self.out.push('"');
                    self.value(key, depth + 1)?;
                    self.out.push('"');
                }
                other => return Err(unserializable(format!("{other} is not a valid JSON key"))),
            }
            self.out.push_str(&self.after_key);
            self.value(&object.get_item(key)?, depth + 1)?;
        }
        self.end('}', keys.is_empty(), depth);
        Ok(())
    }

    /// Writes the separator and indentation before an item of a container.
    fn item(&mut self, is_first: bool, depth: usize) -> Result<(), Error> {
        if depth == MAX_DEPTH {
            return Err(unserializable(format!("value has more than {MAX_DEPTH} levels")));
        }
        if !is_first {
            self.out.push_str(&self.between);
        }
        self.line(depth + 1);
        Ok(())
    }

    fn end(&mut self, close: char, is_empty: bool, depth: usize) {
        if !is_empty {
            self.line(depth);
        }
        self.out.push(close);
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            (0..depth).for_each(|_| self.out.push_str(indent));
        }
    }

    fn number(&mut self, number: &Value) -> Result<(), Error> {
        if number.is_integer() {
            self.out.push_str(&number.to_string());
        } else {
            self.out.push_str(&float(f64::try_from(number.clone())?));
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
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
    }
}

/// Formats a float as Python's `repr`: the shortest digits that round-trip, with an exponent below
/// 1e-4 and from 1e16 on.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    match text.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>())) {
        Some((digits, Ok(exponent))) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => text,
    }
}

fn unserializable(what: String) -> Error {
    Error::new(ErrorKind::BadSerialization, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected texts printed by Python 3.11.
    #[test]
    fn floats_match_python() {
        for (value, text) in [
            (0.5, "0.5"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (123456789012345.0, "123456789012345.0"),
            (1e16, "1e+16"),
            (-1.5e300, "-1.5e+300"),
            (f64::INFINITY, "Infinity"),
        ] {
            assert_eq!(float(value), text);
        }
    }
}
