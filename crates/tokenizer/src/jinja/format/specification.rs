//! Specification of a field: `[[fill]align][sign][z][#][0][width][grouping][.precision][type]`.

use crate::jinja::budget::Budget;
use crate::jinja::error::{Result, failed};
use crate::jinja::value::{Value, float_repr, text_of};

/// Maximum precision: digits after the point of a number, or characters of a text.
pub const MAX_PRECISION: usize = 10_000;

/// A parsed specification.
#[derive(Clone, Copy, Debug)]
pub struct Specification {
    pub fill: char,
    /// `<`, `>`, `^` or `=`; `None` for the default of the type.
    pub align: Option<char>,
    /// `+`, `-` or a space.
    pub sign: char,
    /// Whether negative zero loses its sign.
    pub no_negative_zero: bool,
    pub alternate: bool,
    pub width: usize,
    /// `,` or `_`.
    pub grouping: Option<char>,
    pub precision: Option<usize>,
    pub kind: Option<char>,
}

impl Default for Specification {
    fn default() -> Self {
        Self {
            fill: ' ',
            align: None,
            sign: '-',
            no_negative_zero: false,
            alternate: false,
            width: 0,
            grouping: None,
            precision: None,
            kind: None,
        }
    }
}

impl Specification {
    /// Parses a specification.
    pub fn parse(text: &str) -> Result<Self> {
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        let mut result = Self::default();
        let is_align = |char: Option<&char>| char.is_some_and(|char| "<>^=".contains(*char));
        if is_align(chars.get(1)) {
            (result.fill, result.align, at) = (chars[0], Some(chars[1]), 2);
        } else if is_align(chars.first()) {
            (result.align, at) = (Some(chars[0]), 1);
        }
        let has_fill = at == 2;
        if let Some(sign @ ('+' | '-' | ' ')) = chars.get(at) {
            (result.sign, at) = (*sign, at + 1);
        }
        if chars.get(at) == Some(&'z') {
            (result.no_negative_zero, at) = (true, at + 1);
        }
        if chars.get(at) == Some(&'#') {
            (result.alternate, at) = (true, at + 1);
        }
        if chars.get(at) == Some(&'0') && !has_fill {
            result.fill = '0';
            result.align = result.align.or(Some('='));
            at += 1;
        }
        let number = |at: &mut usize| {
            let digits: String =
                chars[*at..].iter().take_while(|char| char.is_ascii_digit()).collect();
            *at += digits.len();
            match digits.parse::<usize>() {
                Ok(number) => Ok(Some(number)),
                Err(_) if digits.is_empty() => Ok(None),
                Err(_) => failed("Too many decimal digits in format string"),
            }
        };
        result.width = number(&mut at)?.unwrap_or(0);
        if let Some(grouping @ (',' | '_')) = chars.get(at) {
            (result.grouping, at) = (Some(*grouping), at + 1);
        }
        if chars.get(at) == Some(&'.') {
            at += 1;
            match number(&mut at)? {
                Some(precision) => result.precision = Some(precision),
                None => return failed("Format specifier missing precision"),
            }
        }
        if let Some(kind) = chars.get(at) {
            (result.kind, at) = (Some(*kind), at + 1);
        }
        if at < chars.len() {
            return failed(format!("Invalid format specifier '{text}'"));
        }
        Ok(result)
    }

    /// Pads a text to the width.
    pub fn pad(&self, text: &str, default: char, budget: &Budget) -> Result<String> {
        budget.text(self.width.saturating_add(text.len()))?;
        let missing = self.width.saturating_sub(text.chars().count());
        let fill = |count| String::from(self.fill).repeat(count);
        Ok(match self.align.unwrap_or(default) {
            '<' => format!("{text}{}", fill(missing)),
            '^' => format!("{}{text}{}", fill(missing / 2), fill(missing - missing / 2)),
            _ => format!("{}{text}", fill(missing)),
        })
    }

    /// Pads a number, and writes its sign, its prefix and its groups.
    fn pad_number(
        &self,
        is_negative: bool,
        prefix: &str,
        digits: &str,
        group: usize,
        budget: &Budget,
    ) -> Result<String> {
        let sign = match self.sign {
            _ if is_negative => "-",
            '+' => "+",
            ' ' => " ",
            _ => "",
        };
        let is_padded = self.align == Some('=');
        let room = self.width.saturating_sub(sign.len() + prefix.len());
        budget.text(room.saturating_add(digits.len()))?;
        let (whole, rest) = digits.split_at(
            digits
                .find(|char: char| !char.is_ascii_hexdigit() || (group == 3 && char == 'e'))
                .unwrap_or(digits.len()),
        );
        let digits = match self.grouping {
            Some(separator) => {
                let width =
                    if is_padded && self.fill == '0' { room.saturating_sub(rest.len()) } else { 0 };
                format!("{}{rest}", grouped(whole, separator, group, width))
            }
            None => digits.to_owned(),
        };
        if is_padded {
            let missing = room.saturating_sub(digits.len());
            let fill = String::from(self.fill).repeat(missing);
            return Ok(format!("{sign}{prefix}{fill}{digits}"));
        }
        self.pad(&format!("{sign}{prefix}{digits}"), '>', budget)
    }
}

/// Writes separators between groups of digits, and zeros before them up to a width.
fn grouped(digits: &str, separator: char, group: usize, width: usize) -> String {
    let mut reversed = String::new();
    let mut count = 0;
    let mut digits = digits.chars().rev();
    loop {
        let next = digits.next();
        if next.is_none() && reversed.len() >= width {
            break;
        }
        if count > 0 && count % group == 0 {
            // A number does not begin with a separator.
            reversed.push(separator);
        }
        reversed.push(next.unwrap_or('0'));
        count += 1;
    }
    reversed.chars().rev().collect()
}

/// Formats a value, as Python's `format(value, specification)`.
pub fn format_value(value: &Value, specification: &str, budget: &Budget) -> Result<String> {
    if specification.is_empty() {
        return Ok(text_of(value, budget)?.to_string());
    }
    match value {
        Value::Text(text) => {
            let specification = Specification::parse(specification)?;
            format_text(&text.text, &specification, budget)
        }
        Value::Int(_) | Value::Bool(_) => {
            let specification = Specification::parse(specification)?;
            format_int(value.as_int().unwrap_or_default(), &specification, budget)
        }
        Value::Float(value) => format_float(*value, &Specification::parse(specification)?, budget),
        other => {
            failed(format!("unsupported format string passed to {}.__format__", other.type_name()))
        }
    }
}

fn format_text(text: &str, specification: &Specification, budget: &Budget) -> Result<String> {
    if !matches!(specification.kind, None | Some('s')) {
        return failed("Unknown format code for object of type 'str'");
    }
    if specification.sign != '-' || specification.alternate || specification.grouping.is_some() {
        return failed("Sign, '#' and grouping are not allowed in string format specifier");
    }
    let align = match specification.align {
        Some('=') if specification.fill == '0' => Some('<'),
        Some('=') => return failed("'=' alignment not allowed in string format specifier"),
        other => other,
    };
    let specification = Specification { align, ..*specification };
    match specification.precision {
        Some(precision) => {
            let text: String = text.chars().take(precision).collect();
            specification.pad(&text, '<', budget)
        }
        None => specification.pad(text, '<', budget),
    }
}

/// Formats an integer.
pub fn format_int(value: i128, specification: &Specification, budget: &Budget) -> Result<String> {
    let magnitude = value.unsigned_abs();
    let (prefix, digits, group) = match specification.kind {
        Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => {
            return format_float(value as f64, specification, budget);
        }
        Some('c') => {
            let char = u32::try_from(value).ok().and_then(char::from_u32);
            let Some(char) = char else { return failed("%c arg not in range(0x110000)") };
            return specification.pad(&char.to_string(), '<', budget);
        }
        _ if specification.precision.is_some() => {
            return failed("Precision not allowed in integer format specifier");
        }
        None | Some('d' | 'n') => ("", magnitude.to_string(), 3),
        Some('b') => ("0b", format!("{magnitude:b}"), 4),
        Some('o') => ("0o", format!("{magnitude:o}"), 4),
        Some('x') => ("0x", format!("{magnitude:x}"), 4),
        Some('X') => ("0X", format!("{magnitude:X}"), 4),
        Some(kind) => {
            return failed(format!("Unknown format code '{kind}' for object of type 'int'"));
        }
    };
    let prefix = if specification.alternate { prefix } else { "" };
    specification.pad_number(value < 0, prefix, &digits, group, budget)
}

/// Formats a float.
pub fn format_float(value: f64, specification: &Specification, budget: &Budget) -> Result<String> {
    let kind = specification.kind;
    if !matches!(kind, None | Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'n' | '%')) {
        let kind = kind.unwrap_or_default();
        return failed(format!("Unknown format code '{kind}' for object of type 'float'"));
    }
    let mut digits = float_digits(value.abs(), specification)?;
    if matches!(kind, Some('E' | 'F' | 'G')) {
        digits = digits.to_uppercase();
    }
    if kind == Some('%') {
        digits.push('%');
    }
    let is_zero = !digits.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) && value.is_finite();
    let is_negative =
        value.is_sign_negative() && !value.is_nan() && !(specification.no_negative_zero && is_zero);
    specification.pad_number(is_negative, "", &digits, 3, budget)
}

/// Returns the digits of a float that is not negative.
fn float_digits(value: f64, specification: &Specification) -> Result<String> {
    if value.is_nan() {
        return Ok("nan".into());
    }
    if value.is_infinite() {
        return Ok("inf".into());
    }
    let precision = specification.precision;
    if precision.is_some_and(|precision| precision > MAX_PRECISION) {
        return failed(format!("the precision exceeds {MAX_PRECISION}"));
    }
    let alternate = specification.alternate;
    Ok(match specification.kind {
        Some('f' | 'F') => fixed(value, precision.unwrap_or(6), alternate),
        Some('%') => fixed(value * 100.0, precision.unwrap_or(6), alternate),
        Some('e' | 'E') => scientific(value, precision.unwrap_or(6), alternate),
        Some(_) => general(value, precision.unwrap_or(6), alternate, false),
        None => match precision {
            Some(precision) => general(value, precision, alternate, true),
            None => float_repr(value),
        },
    })
}

fn fixed(value: f64, precision: usize, alternate: bool) -> String {
    let point = if alternate && precision == 0 { "." } else { "" };
    format!("{value:.precision$}{point}")
}

fn scientific(value: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let point = if alternate && precision == 0 { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{point}e{sign}{:02}", exponent.unsigned_abs())
}

/// Formats by significant digits; `with_point` writes at least one digit after the point.
fn general(value: f64, precision: usize, alternate: bool, with_point: bool) -> String {
    let precision = precision.max(1);
    let text = format!("{value:.0$e}", precision - 1);
    let exponent: i64 =
        text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or_default();
    let limit = precision as i64 - i64::from(with_point);
    if exponent < -4 || exponent >= limit {
        let text = scientific(value, precision - 1, alternate);
        if alternate {
            return text;
        }
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, ""));
        return format!("{}e{exponent}", trim_zeros(digits));
    }
    let decimals = usize::try_from(precision as i64 - 1 - exponent).unwrap_or_default();
    let text = fixed(value, decimals, alternate);
    if alternate {
        return text;
    }
    let text = trim_zeros(&text);
    if with_point && !text.contains('.') { format!("{text}.0") } else { text.to_owned() }
}

fn trim_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}
