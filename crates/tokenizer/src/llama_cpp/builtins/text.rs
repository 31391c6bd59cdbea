//! Filters and methods of strings. Letters and white space are those of ASCII.

use memchr::memmem;

use super::{Call, Table, default, not_implemented, paid, slice, tojson};
use crate::llama_cpp::result::{Result, failed};
use crate::llama_cpp::value::{Text, Value, text_of};

pub const TEXT: Table = &[
    ("default", default),
    ("upper", |call| mapped(call, <[u8]>::make_ascii_uppercase)),
    ("lower", |call| mapped(call, <[u8]>::make_ascii_lowercase)),
    ("strip", |call| strip(call, true, true)),
    ("rstrip", |call| strip(call, false, true)),
    ("lstrip", |call| strip(call, true, false)),
    ("title", |call| mapped(call, title)),
    ("capitalize", |call| mapped(call, capitalize)),
    ("length", |call| Ok(Value::Int(call.text(0)?.bytes.len() as i64))),
    ("startswith", |call| Ok(Value::Bool(call.text(0)?.bytes.starts_with(&call.text(1)?.bytes)))),
    ("endswith", |call| Ok(Value::Bool(call.text(0)?.bytes.ends_with(&call.text(1)?.bytes)))),
    ("split", split),
    ("rsplit", rsplit),
    ("replace", replace),
    ("format", format),
    ("int", int),
    ("float", float),
    ("string", |call| call.text(0).map(Value::Text)),
    ("slice", sliced),
    ("safe", |call| call.text(0).map(Value::Text)),
    ("tojson", tojson),
    ("indent", indent),
    ("join", not_implemented),
];

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

/// Finds a part of a text from a place on.
pub fn find(text: &[u8], part: &[u8], from: usize) -> Option<usize> {
    memmem::find(text.get(from..)?, part).map(|at| from + at)
}

fn mapped(call: &Call<'_>, change: impl Fn(&mut [u8])) -> Result<Value> {
    let text = call.text(0)?;
    call.machine.budget.text(text.weight())?;
    Ok(Value::Text(text.map_parts(change).into()))
}

fn title(part: &mut [u8]) {
    let mut begins = true;
    for byte in part {
        match is_space(*byte) {
            true => begins = true,
            false if begins => {
                byte.make_ascii_uppercase();
                begins = false;
            }
            false => byte.make_ascii_lowercase(),
        }
    }
}

fn capitalize(part: &mut [u8]) {
    part.make_ascii_lowercase();
    if let Some(first) = part.first_mut() {
        first.make_ascii_uppercase();
    }
}

fn strip(call: &Call<'_>, left: bool, right: bool) -> Result<Value> {
    let text = call.text(0)?;
    let strips: Box<dyn Fn(u8) -> bool> = match call.keyword_or("chars", 1) {
        Value::Undefined(_) => Box::new(is_space),
        chars => {
            let chars = text_of(&chars, &call.machine.budget)?;
            call.machine.budget.text(text.bytes.len().saturating_mul(chars.bytes.len()))?;
            Box::new(move |byte| chars.bytes.contains(&byte))
        }
    };
    call.machine.budget.text(text.weight())?;
    let bytes = &text.bytes;
    let start = if left { bytes.iter().position(|byte| !strips(*byte)) } else { Some(0) };
    let start = start.unwrap_or(bytes.len());
    let kept = if right {
        bytes.iter().rposition(|byte| !strips(*byte)).map_or(0, |at| at + 1)
    } else {
        bytes.len()
    };
    Ok(Value::Text(text.part(start..kept.max(start)).into()))
}

/// Returns text, separator and the number of splits; without a separator it is a space.
fn separator(call: &Call<'_>) -> Result<(Vec<u8>, Vec<u8>, i64)> {
    call.count(1, 3)?;
    let text = call.text(0)?.bytes.clone();
    let separator = match call.arguments.len() {
        1 => b" ".to_vec(),
        _ => text_of(&call.at(1)?, &call.machine.budget)?.bytes.clone(),
    };
    if separator.is_empty() {
        return failed("empty separator");
    }
    let most = if call.arguments.len() > 2 { call.at(2)?.as_int()? } else { -1 };
    call.machine.budget.text(text.len().saturating_mul(2))?;
    Ok((text, separator, most))
}

fn texts(call: &Call<'_>, parts: Vec<&[u8]>) -> Result<Value> {
    call.machine.budget.list(parts.len())?;
    Ok(Value::list(parts.into_iter().map(Value::text).collect()))
}

fn split(call: &Call<'_>) -> Result<Value> {
    let (text, separator, mut most) = separator(call)?;
    let (mut parts, mut start) = (Vec::new(), 0);
    while let Some(at) = find(&text, &separator, start).filter(|_| most != 0) {
        parts.push(&text[start..at]);
        start = at + separator.len();
        most -= 1;
    }
    parts.push(&text[start..]);
    texts(call, parts)
}

fn rsplit(call: &Call<'_>) -> Result<Value> {
    let (text, separator, mut most) = separator(call)?;
    let (mut parts, mut rest) = (Vec::new(), &text[..]);
    while most != 0 {
        let Some(at) = memmem::rfind(rest, &separator) else { break };
        parts.push(&rest[at + separator.len()..]);
        rest = &rest[..at];
        most -= 1;
    }
    parts.push(rest);
    parts.reverse();
    texts(call, parts)
}

fn replace(call: &Call<'_>) -> Result<Value> {
    call.count(3, usize::MAX)?;
    let (text, old, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    if call.arguments.len() > 3 && call.at(3)?.as_int()? > 0 {
        return failed("replace with a count is not implemented");
    }
    let budget = &call.machine.budget;
    budget.text(text.bytes.len())?;
    if old.bytes == new.bytes {
        return Ok(Value::text(text.bytes.clone()));
    }
    let mut out = Vec::new();
    if old.bytes.is_empty() {
        budget.text(new.bytes.len().saturating_mul(text.bytes.len() + 1))?;
        out.extend_from_slice(&new.bytes);
        for byte in &text.bytes {
            out.push(*byte);
            out.extend_from_slice(&new.bytes);
        }
        return Ok(Value::text(out));
    }
    let mut start = 0;
    while let Some(at) = find(&text.bytes, &old.bytes, start) {
        budget.text(new.bytes.len() + at - start)?;
        out.extend_from_slice(&text.bytes[start..at]);
        out.extend_from_slice(&new.bytes);
        start = at + old.bytes.len();
    }
    out.extend_from_slice(&text.bytes[start..]);
    Ok(Value::text(out))
}

/// Knows `{}` only.
fn format(call: &Call<'_>) -> Result<Value> {
    let format = call.text(0)?;
    let mut out = Text::default();
    let mut rest = &format.bytes[..];
    let mut argument = 1;
    while let Some(at) = rest.iter().position(|byte| *byte == b'{') {
        if rest.get(at + 1) != Some(&b'}') {
            return failed("format() knows `{}` only");
        }
        out.append(&rest[..at].to_vec().into());
        let text = text_of(&call.at(argument)?, &call.machine.budget)?;
        call.machine.budget.text(rest.len() + text.weight())?;
        out.append(&text);
        argument += 1;
        rest = &rest[at + 2..];
    }
    out.append(&rest.to_vec().into());
    Ok(Value::Text(out.into()))
}

/// Reads an integer of 32 bits at the start of a text, as `std::stoi`.
fn int(call: &Call<'_>) -> Result<Value> {
    let base = match call.keyword_or("base", 2) {
        Value::Undefined(_) => 10,
        base => base.as_int()?,
    };
    let base = match u32::try_from(base) {
        Ok(base @ (0 | 2..=36)) => base,
        _ => return failed("int() base must be 0 or between 2 and 36"),
    };
    let text = call.text(0)?;
    call.machine.budget.text(text.bytes.len())?;
    match leading_int(&text.lossy(), base) {
        Some(value) => Ok(Value::Int(value)),
        None => match call.keyword_or("default", 1) {
            Value::Undefined(_) => Ok(Value::Int(0)),
            otherwise => otherwise.as_int().map(Value::Int),
        },
    }
}

fn leading_int(text: &str, base: u32) -> Option<i64> {
    let text = text.trim_start_matches(|char: char| char.is_ascii() && is_space(char as u8));
    let is_negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|char: char| char.is_ascii_hexdigit()));
    let (digits, base) = match (base, hexadecimal) {
        (0 | 16, Some(rest)) => (rest, 16),
        (0, None) if digits.starts_with('0') => (digits, 8),
        (0, None) => (digits, 10),
        _ => (digits, base),
    };
    let end = digits.find(|char: char| !char.is_digit(base)).unwrap_or(digits.len());
    let value = i64::from_str_radix(&digits[..end], base).ok()?;
    let value = if is_negative { -value } else { value };
    i32::try_from(value).ok().map(i64::from)
}

/// Reads a float at the start of a text, as `std::stod`.
fn float(call: &Call<'_>) -> Result<Value> {
    let text = call.text(0)?;
    call.machine.budget.text(text.bytes.len())?;
    match leading_float(&text.lossy()) {
        Some(value) => Ok(Value::Float(value)),
        None => match call.keyword_or("default", 1) {
            Value::Undefined(_) => Ok(Value::Float(0.0)),
            otherwise => otherwise.as_float().map(Value::Float),
        },
    }
}

fn leading_float(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(|char: char| char.is_ascii() && is_space(char as u8));
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = text.len() - unsigned.len();
    let lower = unsigned.to_ascii_lowercase();
    let word = ["infinity", "inf", "nan"].into_iter().find(|word| lower.starts_with(word));
    if let Some(word) = word {
        return text[..sign + word.len()].parse().ok();
    }
    let digits = |from: usize| unsigned[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    if unsigned[end..].starts_with('.') {
        let decimals = digits(end + 1);
        if end + decimals > 0 {
            end += 1 + decimals;
        }
    }
    if end > 0 && unsigned[end..].starts_with(['e', 'E']) {
        let after = end + 1 + usize::from(unsigned[end + 1..].starts_with(['-', '+']));
        let exponent = digits(after);
        if exponent > 0 {
            end = after + exponent;
        }
    }
    let value: f64 = text[..sign + end].parse().ok()?;
    value.is_finite().then_some(value)
}

fn sliced(call: &Call<'_>) -> Result<Value> {
    let text = call.text(0)?;
    let places = slice(call, text.bytes.len())?;
    paid(call.machine, places.into_iter().map(|place| text.bytes[place]).collect())
}

/// Indents lines. Empty lines at the start are lost, and so is a line break at the end of the last one, which returns.
fn indent(call: &Call<'_>) -> Result<Value> {
    call.count(1, 4)?;
    let text = call.text(0)?;
    let budget = &call.machine.budget;
    let first = call.keyword_or("first", 2).is_true()?;
    let blank = call.keyword_or("blank", 3).is_true()?;
    let indent = match call.keyword_or("width", 1) {
        Value::Int(width) => {
            let Ok(width) = usize::try_from(width) else {
                return failed("indent() takes a width that is not negative");
            };
            budget.text(width)?;
            vec![b' '; width]
        }
        Value::Text(text) => text.bytes.clone(),
        _ => b"    ".to_vec(),
    };
    let ends = text.bytes.ends_with(b"\n");
    let lines = text.bytes.strip_suffix(b"\n").unwrap_or(&text.bytes);
    let mut out = Vec::new();
    if !text.bytes.is_empty() {
        for line in lines.split(|byte| *byte == b'\n') {
            budget.text(indent.len() + line.len())?;
            let begins = out.is_empty();
            if !begins {
                out.push(b'\n');
            }
            if if begins { first } else { blank || !line.is_empty() } {
                out.extend_from_slice(&indent);
            }
            out.extend_from_slice(line);
        }
    }
    if ends {
        out.push(b'\n');
        if blank {
            out.extend_from_slice(&indent);
        }
    }
    Ok(Value::text(out))
}
