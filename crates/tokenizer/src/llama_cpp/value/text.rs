//! Texts: bytes, and the places where concatenation joined them.

use std::rc::Rc;

use super::{JsonStyle, MAX_DEPTH, Value, float_text, to_json};
use crate::jinja::Budget;
use crate::llama_cpp::result::{Result, failed};

/// A text. Its length, slices and elements are those of its bytes in UTF-8. `capitalize` and `title` apply to each part.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub bytes: Vec<u8>,
    /// Starts of the parts after the first.
    cuts: Vec<usize>,
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, cuts: Vec::new() }
    }
}

impl Text {
    /// Appends the parts of another text.
    pub fn append(&mut self, other: &Self) {
        let start = self.bytes.len();
        if start > 0 && !other.bytes.is_empty() {
            self.cuts.push(start);
        }
        self.cuts.extend(other.cuts.iter().map(|cut| start + cut));
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Bytes of memory that the text takes.
    pub fn weight(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.cuts)
    }

    /// Changes each part.
    pub fn map_parts(&self, change: impl Fn(&mut [u8])) -> Self {
        let mut text = self.clone();
        let mut start = 0;
        for end in self.cuts.iter().copied().chain([self.bytes.len()]) {
            change(&mut text.bytes[start..end]);
            start = end;
        }
        text
    }

    /// Returns a part of the bytes.
    pub fn part(&self, range: std::ops::Range<usize>) -> Self {
        let inside = self.cuts.iter().filter(|cut| **cut > range.start && **cut < range.end);
        Self {
            cuts: inside.map(|cut| cut - range.start).collect(),
            bytes: self.bytes[range].to_vec(),
        }
    }

    /// Text for messages.
    pub fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Returns a value as a text, or fails: undefined values and functions have none.
pub fn text_of(value: &Value, budget: &Budget) -> Result<Rc<Text>> {
    if let Value::Text(text) = value {
        return Ok(Rc::clone(text));
    }
    let mut out = Vec::new();
    match value {
        Value::Undefined(_) | Value::Function(_) | Value::Keyword(_) => {
            return failed(format!("{} is not a string value", value.type_name()));
        }
        other => repr(other, &mut out, budget, 0)?,
    }
    Ok(Rc::new(out.into()))
}

/// Writes a value as within a list.
pub fn repr(value: &Value, out: &mut Vec<u8>, budget: &Budget, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return failed("a value is nested too deeply to be printed");
    }
    budget.spend(1)?;
    match value {
        Value::Undefined(_) => out.extend(value.type_name().bytes()),
        Value::None => out.extend(b"None"),
        Value::Bool(value) => out.extend(if *value { &b"True"[..] } else { b"False" }),
        Value::Int(value) => out.extend(value.to_string().bytes()),
        Value::Float(value) => out.extend(float_text(*value).bytes()),
        Value::Text(text) => {
            budget.text(text.bytes.len())?;
            if text.bytes.contains(&b'\'') {
                to_json(value, &JsonStyle::default(), out, budget)?;
            } else {
                out.push(b'\'');
                out.extend_from_slice(&text.bytes);
                out.push(b'\'');
            }
        }
        Value::List(list) => {
            let items = list.items.borrow();
            out.push(if list.is_tuple { b'(' } else { b'[' });
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.extend(b", ");
                }
                repr(item, out, budget, depth + 1)?;
            }
            if list.is_tuple && items.len() == 1 {
                out.push(b',');
            }
            out.push(if list.is_tuple { b')' } else { b']' });
        }
        Value::Dict(dict) => {
            out.push(b'{');
            for (i, (key, value)) in dict.entries().into_iter().enumerate() {
                if i > 0 {
                    out.extend(b", ");
                }
                repr(&key, out, budget, depth + 1)?;
                out.extend(b": ");
                repr(&value, out, budget, depth + 1)?;
            }
            out.push(b'}');
        }
        Value::Function(function) => out.extend(format!("Function<{}>()", function.name).bytes()),
        Value::Keyword(_) => out.extend(b"KwArg"),
    }
    Ok(())
}
