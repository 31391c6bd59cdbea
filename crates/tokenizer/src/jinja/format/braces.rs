//! `str.format`.

use std::iter::Peekable;
use std::str::Chars;

use super::percent::ascii;
use super::specification::format_value;
use crate::jinja::access;
use crate::jinja::arguments::Arguments;
use crate::jinja::budget::Budget;
use crate::jinja::error::{Result, failed};
use crate::jinja::markup::{escape, escape_text};
use crate::jinja::value::{Value, repr, text_of};

/// Formats fields in braces; with `escaped`, the texts of fields are escaped.
pub fn format(text: &str, arguments: &Arguments, escaped: bool, budget: &Budget) -> Result<String> {
    let mut formatter =
        Formatter { arguments, escaped, budget, numbering: Numbering::Unknown, next: 0 };
    formatter.format(text, 2)
}

#[derive(PartialEq, Eq)]
enum Numbering {
    Unknown,
    Automatic,
    Manual,
}

struct Formatter<'a> {
    arguments: &'a Arguments,
    escaped: bool,
    budget: &'a Budget,
    numbering: Numbering,
    next: usize,
}

impl Formatter<'_> {
    /// Formats a text with fields nested up to this depth.
    fn format(&mut self, text: &str, depth: usize) -> Result<String> {
        let mut out = String::new();
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '{' if chars.next_if_eq(&'{').is_some() => out.push('{'),
                '}' if chars.next_if_eq(&'}').is_some() => out.push('}'),
                '}' => return failed("Single '}' encountered in format string"),
                '{' => {
                    let field = self.field(&mut chars, depth)?;
                    self.budget.text(field.len())?;
                    out.push_str(&field);
                }
                _ => out.push(char),
            }
        }
        Ok(out)
    }

    /// Reads a field after its brace, and formats it.
    fn field(&mut self, chars: &mut Peekable<Chars<'_>>, depth: usize) -> Result<String> {
        if depth == 0 {
            return failed("Max string recursion exceeded");
        }
        let (mut name, mut specification) = (String::new(), String::new());
        let mut conversion = None;
        let (mut open, mut brackets, mut in_specification) = (1, 0, false);
        loop {
            let Some(char) = chars.next() else {
                return failed("expected '}' before end of string");
            };
            match char {
                '{' => open += 1,
                '}' => open -= 1,
                '[' if !in_specification => brackets += 1,
                ']' if !in_specification => brackets -= 1,
                _ => {}
            }
            if open == 0 {
                break;
            }
            if in_specification {
                specification.push(char);
            } else if brackets == 0 && char == ':' {
                in_specification = true;
            } else if brackets == 0 && char == '!' {
                conversion = chars.next();
                match chars.peek() {
                    Some(':' | '}') => {}
                    _ => return failed("expected ':' after conversion specifier"),
                }
            } else {
                name.push(char);
            }
        }
        let value = self.value(&name)?;
        let value = match conversion {
            None => value,
            Some('s') => Value::markup(text_of(&value, self.budget)?, value.is_markup()),
            Some('r') => Value::text(repr(&value, self.budget)?),
            Some('a') => Value::text(ascii(&repr(&value, self.budget)?)),
            Some(other) => return failed(format!("Unknown conversion specifier {other}")),
        };
        let specification = self.format(&specification, depth - 1)?;
        if !self.escaped {
            return format_value(&value, &specification, self.budget);
        }
        if value.is_markup() {
            if !specification.is_empty() {
                return failed("Unsupported format specification for Markup.");
            }
            return Ok(escape(&value, self.budget)?.to_string());
        }
        Ok(escape_text(&format_value(&value, &specification, self.budget)?))
    }

    /// Returns the value of a field such as `0.name[key]`.
    fn value(&mut self, field: &str) -> Result<Value> {
        let end = field.find(['.', '[']).unwrap_or(field.len());
        let (first, mut rest) = field.split_at(end);
        let mut value = self.argument(first)?;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                if end == 0 {
                    return failed("Empty attribute in format string");
                }
                value = access::attribute(&value, &after[..end], self.budget)?;
                rest = &after[end..];
            } else if let Some((key, after)) =
                rest.strip_prefix('[').and_then(|after| after.split_once(']'))
            {
                if key.is_empty() {
                    return failed("Empty attribute in format string");
                }
                let index = match key.bytes().all(|byte| byte.is_ascii_digit()) {
                    true => Value::Int(key.parse().unwrap_or(i128::MAX)),
                    false => Value::text(key),
                };
                value = access::item(&value, &index, self.budget)?;
                rest = after;
            } else {
                return failed("Only '.' or '[' may follow ']' in format field specifier");
            }
        }
        Ok(value)
    }

    fn argument(&mut self, name: &str) -> Result<Value> {
        let index = if name.is_empty() {
            self.set_numbering(Numbering::Automatic)?;
            self.next += 1;
            Some(self.next - 1)
        } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
            self.set_numbering(Numbering::Manual)?;
            Some(name.parse().unwrap_or(usize::MAX))
        } else {
            None
        };
        self.budget.list(self.arguments.named.len())?;
        let value = match index {
            Some(index) => self.arguments.positional.get(index),
            None => self.arguments.named.iter().find(|(other, _)| other == name).map(|(_, v)| v),
        };
        match (value, index) {
            (Some(value), _) => Ok(value.clone()),
            (None, Some(index)) => {
                failed(format!("Replacement index {index} out of range for positional args tuple"))
            }
            (None, None) => failed(format!("the format needs the argument {name:?}")),
        }
    }

    fn set_numbering(&mut self, numbering: Numbering) -> Result<()> {
        if self.numbering != Numbering::Unknown && self.numbering != numbering {
            return failed(
                "cannot switch between manual field specification and automatic field numbering",
            );
        }
        self.numbering = numbering;
        Ok(())
    }
}
