//! `%` of strings.

use std::iter::Peekable;
use std::str::Chars;

use super::specification::{MAX_PRECISION, Specification, format_float, format_int};
use crate::jinja::budget::Budget;
use crate::jinja::error::{Result, failed};
use crate::jinja::markup::escape_text;
use crate::jinja::value::{Value, repr, text_of};

/// Arguments of a format.
struct Values<'a> {
    all: &'a Value,
    next: usize,
}

impl<'a> Values<'a> {
    fn take(&mut self) -> Result<&'a Value> {
        let value = match self.all {
            Value::Tuple(items) => items.get(self.next),
            only => (self.next == 0).then_some(only),
        };
        self.next += 1;
        match value {
            Some(value) => Ok(value),
            None => failed("not enough arguments for format string"),
        }
    }

    fn take_int(&mut self) -> Result<i128> {
        match self.take()?.as_int() {
            Some(value) => Ok(value),
            None => failed("* wants int"),
        }
    }

    /// Fails if arguments are left.
    fn finish(&self) -> Result<()> {
        let is_used = match self.all {
            Value::Tuple(items) => self.next >= items.len(),
            Value::Dict(_) | Value::List(_) | Value::Undefined(_) | Value::Range(_) => true,
            _ => self.next > 0,
        };
        if is_used {
            Ok(())
        } else {
            failed("not all arguments converted during string formatting")
        }
    }
}

/// Computes `format % values`; with `escaped`, the texts of values are escaped.
pub fn format(format: &str, values: &Value, escaped: bool, budget: &Budget) -> Result<String> {
    budget.text(format.len())?;
    let mut out = String::new();
    let mut values = Values { all: values, next: 0 };
    let mut chars = format.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        let mut named = None;
        if chars.next_if_eq(&'(').is_some() {
            named = Some(mapped(&mut chars, values.all, budget)?);
        }
        let mut specification = Specification::default();
        let mut is_left = false;
        while let Some(flag) = chars.next_if(|char| "#0- +".contains(*char)) {
            match flag {
                '#' => specification.alternate = true,
                '0' => specification.fill = '0',
                '-' => is_left = true,
                '+' => specification.sign = '+',
                _ if specification.sign == '-' => specification.sign = ' ',
                _ => {}
            }
        }
        if chars.next_if_eq(&'*').is_some() {
            let width = values.take_int()?;
            is_left |= width < 0;
            specification.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        } else {
            specification.width = number(&mut chars)?;
        }
        if chars.next_if_eq(&'.').is_some() {
            specification.precision = Some(match chars.next_if_eq(&'*') {
                Some(_) => usize::try_from(values.take_int()?).unwrap_or_default(),
                None => number(&mut chars)?,
            });
        }
        while chars.next_if(|char| "hlL".contains(*char)).is_some() {}
        let Some(kind) = chars.next() else { return failed("incomplete format") };
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = match &named {
            Some(value) => value,
            None => values.take()?,
        };
        if is_left {
            specification.align = Some('<');
            specification.fill = ' ';
        }
        let text = conversion(value, kind, specification, escaped, budget)?;
        budget.text(text.len())?;
        out.push_str(&text);
    }
    values.finish()?;
    Ok(out)
}

/// Reads the name of a mapped argument after its parenthesis, and returns the argument.
fn mapped(chars: &mut Peekable<Chars<'_>>, values: &Value, budget: &Budget) -> Result<Value> {
    let mut name = String::new();
    let mut depth = 1;
    loop {
        let Some(char) = chars.next() else { return failed("incomplete format key") };
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        name.push(char);
    }
    let Value::Dict(dict) = values else {
        values.defined()?;
        return failed("format requires a mapping");
    };
    match dict.get(&Value::text(name.as_str()), budget)? {
        Some(value) => Ok(value.clone()),
        None => failed(format!("the format needs the key {name:?}")),
    }
}

fn number(chars: &mut Peekable<Chars<'_>>) -> Result<usize> {
    let mut value = 0usize;
    while let Some(digit) = chars.peek().and_then(|char| char.to_digit(10)) {
        chars.next();
        value = value.saturating_mul(10).saturating_add(digit as usize);
    }
    if value > i32::MAX as usize { failed("width too big") } else { Ok(value) }
}

fn conversion(
    value: &Value,
    kind: char,
    mut specification: Specification,
    escaped: bool,
    budget: &Budget,
) -> Result<String> {
    let number_align = |specification: &mut Specification| {
        if specification.fill == '0' && specification.align.is_none() {
            specification.align = Some('=');
        }
    };
    match kind {
        's' | 'r' | 'a' => {
            let text = match kind {
                's' => text_of(value, budget)?.to_string(),
                'r' => repr(value, budget)?,
                _ => ascii(&repr(value, budget)?),
            };
            let text = if escaped && !(kind == 's' && value.is_markup()) {
                escape_text(&text)
            } else {
                text
            };
            let text = match specification.precision {
                Some(precision) => text.chars().take(precision).collect(),
                None => text,
            };
            specification.fill = ' ';
            specification.pad(&text, '>', budget)
        }
        'c' => {
            let text = match value {
                Value::Text(text) if text.text.chars().count() == 1 => text.text.to_string(),
                other => match other
                    .as_int()
                    .and_then(|code| u32::try_from(code).ok())
                    .and_then(char::from_u32)
                {
                    Some(char) => char.to_string(),
                    None => return failed("%c requires int or char"),
                },
            };
            specification.fill = ' ';
            specification.pad(&text, '>', budget)
        }
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            value.defined()?;
            let int = match value {
                Value::Float(float) if "diu".contains(kind) && float.abs() < 1e38 => *float as i128,
                other => match other.as_int() {
                    Some(int) => int,
                    None => {
                        return failed(format!(
                            "%{kind} format: a real number is required, not {}",
                            other.type_name()
                        ));
                    }
                },
            };
            specification.kind = Some(if "diu".contains(kind) { 'd' } else { kind });
            number_align(&mut specification);
            let precision = specification.precision.take().unwrap_or(0);
            if precision > MAX_PRECISION {
                return failed(format!("the precision exceeds {MAX_PRECISION}"));
            }
            let plain = Specification { kind: specification.kind, ..Specification::default() };
            let digits = format_int(int.saturating_abs(), &plain, budget)?;
            if precision > digits.len() {
                // The precision is a number of digits: write them with zeros, then pad.
                let prefix = if specification.alternate { 2 } else { 0 };
                let has_sign = int < 0 || specification.sign != '-';
                let zeros = Specification {
                    fill: '0',
                    align: Some('='),
                    width: precision + usize::from(has_sign) + if kind == 'd' { 0 } else { prefix },
                    ..specification
                };
                let text = format_int(int, &zeros, budget)?;
                let fill = if specification.align == Some('=') { '0' } else { ' ' };
                let align = specification.align.filter(|align| *align != '=');
                let outer = Specification { fill, align, ..specification };
                return outer.pad(&text, '>', budget);
            }
            format_int(int, &specification, budget)
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            value.defined()?;
            let Some(float) = value.as_float() else {
                return failed(format!("must be real number, not {}", value.type_name()));
            };
            specification.kind = Some(kind);
            number_align(&mut specification);
            format_float(float, &specification, budget)
        }
        _ => failed(format!("unsupported format character '{kind}'")),
    }
}

/// Escapes what is not ASCII, as Python's `ascii`.
pub fn ascii(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        match char as u32 {
            0..=0x7f => out.push(char),
            code @ 0x80..=0xff => out.push_str(&format!("\\x{code:02x}")),
            code @ 0x100..=0xffff => out.push_str(&format!("\\u{code:04x}")),
            code => out.push_str(&format!("\\U{code:08x}")),
        }
    }
    out
}
