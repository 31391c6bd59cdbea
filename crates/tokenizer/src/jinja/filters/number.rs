//! Filters of numbers.

use super::super::arguments::{Arguments, flag, int as int_argument, optional};
use super::super::error::{Result, failed};
use super::super::machine::Machine;
use super::super::operators::{binary, signed};
use super::super::syntax::is_space;
use super::super::syntax::tree::Binary;
use super::super::value::Value;
use super::attribute::Path;

const TOO_LARGE: &str =
    "the number has more than 127 bits, the most that a template can compute with here";

pub fn abs(name: &str, value: &Value, arguments: Arguments, _: &Machine) -> Result<Value> {
    arguments.none(name)?;
    let is_negative = match value {
        Value::Float(value) => value.is_sign_negative(),
        other => other.as_int().is_some_and(|value| value < 0),
    };
    match value.as_float() {
        Some(_) => signed(value, is_negative),
        None => {
            value.defined()?;
            failed(format!("bad operand type for abs(): '{}'", value.type_name()))
        }
    }
}

/// Parses an integer as Python's `int(text, base)`.
fn parse_int(text: &str, base: u32) -> Option<i128> {
    let text = text.trim_matches(is_space);
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixed = |prefix: u8| {
        let bytes = digits.as_bytes();
        bytes.len() > 2 && bytes[0] == b'0' && bytes[1].to_ascii_lowercase() == prefix
    };
    let (base, digits) = match base {
        2 | 0 if prefixed(b'b') => (2, &digits[2..]),
        8 | 0 if prefixed(b'o') => (8, &digits[2..]),
        16 | 0 if prefixed(b'x') => (16, &digits[2..]),
        0 if digits.len() > 1
            && digits.starts_with('0')
            && digits.contains(|char: char| char != '0' && char != '_') =>
        {
            return None;
        }
        0 => (10, digits),
        base => (base, digits),
    };
    let digits = digits.strip_prefix('_').filter(|_| base != 10).unwrap_or(digits);
    let digits = plain_digits(digits)?;
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = i128::from_str_radix(&digits, base).ok()?;
    Some(if is_negative { -magnitude } else { magnitude })
}

/// Removes single underscores between digits, and converts decimal digits to ASCII.
fn plain_digits(text: &str) -> Option<String> {
    if text.is_empty() || text.starts_with('_') || text.ends_with('_') || text.contains("__") {
        return None;
    }
    Some(text.chars().filter(|char| *char != '_').map(ascii_digit).collect())
}

/// Converts a decimal digit of another script to ASCII: digits are in blocks of ten.
fn ascii_digit(char: char) -> char {
    if char.is_ascii() {
        return char;
    }
    const ZEROS: [u32; 9] = [0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xe50, 0xed0, 0x1040, 0xff10];
    let code = char as u32;
    let zero = ZEROS.into_iter().find(|zero| (*zero..zero + 10).contains(&code));
    zero.and_then(|zero| char::from_digit(code - zero, 10)).unwrap_or(char)
}

/// Parses a float as Python's `float(text)`.
fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(is_space);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    if !["inf", "infinity", "nan"].contains(&&*lower) {
        let digits = |part: &str| part.is_empty() || plain_digits(part).is_some();
        let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let is_number =
            |part: &str| part.chars().all(|char| char == '_' || ascii_digit(char).is_ascii_digit());
        if whole.is_empty() && fraction.is_empty()
            || exponent.is_empty()
            || ![whole, fraction, exponent].iter().all(|part| digits(part) && is_number(part))
        {
            return None;
        }
    }
    let text: String = text.chars().filter(|char| *char != '_').map(ascii_digit).collect();
    text.parse().ok()
}

/// Converts a value to a float as Python's `float(value)`; `None` if it is no number.
fn to_float(value: &Value) -> Result<Option<f64>> {
    value.defined()?;
    Ok(match value {
        Value::Text(text) => parse_float(&text.text),
        other => other.as_float(),
    })
}

pub fn int(name: &str, value: &Value, arguments: Arguments, _: &Machine) -> Result<Value> {
    let [default, base] = arguments.bind(name, ["default", "base"])?;
    let default = default.unwrap_or(Value::Int(0));
    let base = int_argument(base)?.unwrap_or(10);
    value.defined()?;
    let direct = match value {
        Value::Text(text) => match u32::try_from(base) {
            Ok(base @ (0 | 2..=36)) => parse_int(&text.text, base),
            _ => None,
        },
        Value::Float(float) if float.is_infinite() => {
            return failed("cannot convert float infinity to integer");
        }
        Value::Float(float) => truncated(*float)?,
        other => other.as_int(),
    };
    if let Some(value) = direct {
        return Ok(Value::Int(value));
    }
    match to_float(value)? {
        Some(float) => Ok(truncated(float)?.map_or(default, Value::Int)),
        None => Ok(default),
    }
}

/// Converts a float to an integer, `None` if it is no number.
fn truncated(value: f64) -> Result<Option<i128>> {
    if !value.is_finite() {
        return Ok(None);
    }
    if value.abs() >= 1.7e38 {
        return failed(TOO_LARGE);
    }
    Ok(Some(value as i128))
}

pub fn float(name: &str, value: &Value, arguments: Arguments, _: &Machine) -> Result<Value> {
    let [default] = arguments.bind(name, ["default"])?;
    Ok(match to_float(value)? {
        Some(value) => Value::Float(value),
        None => default.unwrap_or(Value::Float(0.0)),
    })
}

pub fn round(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let [precision, method] = arguments.bind(name, ["precision", "method"])?;
    let precision = int_argument(precision.clone())?.unwrap_or(0);
    let method = method.unwrap_or_else(|| Value::text("common"));
    let method = method.as_str().unwrap_or_default();
    if !["common", "ceil", "floor"].contains(&method) {
        return failed("method must be common, ceil or floor");
    }
    if value.as_float().is_none() {
        value.defined()?;
        return failed(format!("type {} doesn't define __round__ method", value.type_name()));
    }
    if method == "common" {
        return Ok(match (value, value.as_int()) {
            (_, Some(value)) => match round_int(value, precision) {
                Some(value) => Value::Int(value),
                None => return failed(TOO_LARGE),
            },
            (Value::Float(value), None) => Value::Float(round_float(*value, precision)),
            _ => value.clone(),
        });
    }
    let scale = binary(Binary::Power, &Value::Int(10), &Value::Int(precision), &machine.budget)?;
    let scaled = binary(Binary::Multiply, value, &scale, &machine.budget)?;
    let rounded = match scaled {
        Value::Float(scaled) if !scaled.is_finite() => {
            return failed("cannot convert float NaN or infinity to integer");
        }
        Value::Float(scaled) if method == "ceil" => Value::Int(scaled.ceil() as i128),
        Value::Float(scaled) => Value::Int(scaled.floor() as i128),
        other => other,
    };
    binary(Binary::Divide, &rounded, &scale, &machine.budget)
}

/// Rounds to a number of digits after the point, half to even by the exact value.
fn round_float(value: f64, digits: i128) -> f64 {
    if !value.is_finite() || digits > 400 {
        return value;
    }
    if digits >= 0 {
        return format!("{value:.0$}", digits as usize).parse().unwrap_or(value);
    }
    if digits < -400 {
        return 0f64.copysign(value);
    }
    // Whole numbers are exact; the fraction decides between a half and more than a half.
    let text = format!("{:.0}", value.abs().trunc());
    let cut = (-digits) as usize;
    let padded = format!("{text:0>0$}", cut + 1);
    let (head, tail) = padded.split_at(padded.len() - cut);
    let is_odd = head.bytes().last().is_some_and(|digit| digit % 2 == 1);
    let half = format!("5{}", "0".repeat(cut - 1));
    let up = *tail > *half || *tail == *half && (is_odd || value.fract() != 0.0);
    let scale: f64 = format!("1e{cut}").parse().unwrap_or(f64::INFINITY);
    let head: f64 = head.parse().unwrap_or_default();
    let rounded = format!("{:.0}e{cut}", head + f64::from(u8::from(up))).parse();
    rounded.unwrap_or(scale).copysign(value)
}

/// Rounds to a power of ten if `digits` is negative, half to even; `None` if the result is too
/// large.
fn round_int(value: i128, digits: i128) -> Option<i128> {
    let power = digits.checked_neg().and_then(|power| u32::try_from(power).ok());
    let Some(scale) = power.and_then(|power| 10i128.checked_pow(power)) else {
        return Some(if digits >= 0 { value } else { 0 });
    };
    if scale == 1 {
        return Some(value);
    }
    let (quotient, remainder) = (value.div_euclid(scale), value.rem_euclid(scale));
    let rest = scale - remainder;
    let up = remainder > rest || remainder == rest && quotient % 2 != 0;
    (quotient + i128::from(up)).checked_mul(scale)
}

pub fn sum(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let [attribute, start] = arguments.bind(name, ["attribute", "start"])?;
    let path = Path::new(optional(attribute).as_ref(), None, &machine.budget)?;
    let mut sum = start.unwrap_or(Value::Int(0));
    if let Value::Text(_) = sum {
        return failed("sum() can't sum strings [use ''.join(seq) instead]");
    }
    for item in value.items(&machine.budget)? {
        machine.budget.spend(1)?;
        let item = path.get(&item, &machine.budget)?;
        sum = binary(Binary::Add, &sum, &item, &machine.budget)?;
    }
    Ok(sum)
}

pub fn filesizeformat(
    name: &str,
    value: &Value,
    arguments: Arguments,
    _: &Machine,
) -> Result<Value> {
    const PREFIXES: [char; 8] = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];
    let [is_binary] = arguments.bind(name, ["binary"])?;
    let is_binary = flag(is_binary);
    let Some(bytes) = to_float(value)? else {
        return failed("could not convert the value to a number of bytes");
    };
    let base = if is_binary { 1024f64 } else { 1000.0 };
    if bytes == 1.0 {
        return Ok(Value::text("1 Byte"));
    }
    if bytes < base {
        return Ok(Value::text(format!("{} Bytes", bytes.trunc() as i64)));
    }
    let mut text = String::new();
    for (i, prefix) in PREFIXES.into_iter().enumerate() {
        let unit = base.powi(i as i32 + 2);
        let prefix = match is_binary {
            true => format!("{}i", prefix.to_ascii_uppercase()),
            false => prefix.to_string(),
        };
        text = format!("{:.1} {prefix}B", base * bytes / unit);
        if bytes < unit {
            break;
        }
    }
    Ok(Value::text(text))
}
