//! Literals: numbers, and strings with the escapes of Python.

/// A number.
pub enum Number {
    Int(i128),
    Float(f64),
}

/// Reads a number at the beginning of `text`, which begins with a digit; after a dot only an
/// integer. Returns the number and its length.
pub(super) fn number(text: &str, after_dot: bool) -> Result<(Number, usize), String> {
    if !after_dot && let Some(len) = float_len(text) {
        let value = text[..len].replace('_', "").parse();
        return Ok((Number::Float(value.map_err(|_| "invalid number")?), len));
    }
    let bytes = text.as_bytes();
    for (prefix, radix) in [(b'b', 2), (b'o', 8), (b'x', 16)] {
        if bytes[0] == b'0' && bytes.get(1).is_some_and(|byte| byte.to_ascii_lowercase() == prefix)
        {
            let len = digits_len(&text[2..], radix);
            if len > 0 {
                let digits = text[2..2 + len].replace('_', "");
                let value = i128::from_str_radix(&digits, radix).map_err(|_| too_long(&digits))?;
                return Ok((Number::Int(value), 2 + len));
            }
        }
    }
    let len = if bytes[0] == b'0' {
        let zeros = text.find(|char| char != '0' && char != '_').unwrap_or(text.len());
        text[..zeros].trim_end_matches('_').len()
    } else {
        digits_len(text, 10)
    };
    let digits = text[..len].replace('_', "");
    Ok((Number::Int(digits.parse().map_err(|_| too_long(&digits))?), len))
}

fn too_long(digits: &str) -> String {
    format!("the integer of {} digits is too long", digits.len())
}

/// Returns the length of digits with single underscores between them.
fn digits_len(text: &str, radix: u32) -> usize {
    let mut len = 0;
    for part in text.split('_') {
        let digits = part.find(|char: char| !char.is_digit(radix)).unwrap_or(part.len());
        if digits == 0 {
            break;
        }
        len += digits + usize::from(len > 0);
        if digits < part.len() {
            break;
        }
    }
    len
}

/// Returns the length of a number with a fraction or an exponent.
fn float_len(text: &str) -> Option<usize> {
    let mut len = digits_len(text, 10);
    let mut is_float = false;
    if text[len..].starts_with('.') {
        let fraction = digits_len(&text[len + 1..], 10);
        if fraction > 0 {
            len += 1 + fraction;
            is_float = true;
        }
    }
    if text[len..].starts_with(['e', 'E']) {
        let sign = usize::from(text[len + 1..].starts_with(['+', '-']));
        let exponent = digits_len(&text[len + 1 + sign..], 10);
        if exponent > 0 {
            len += 1 + sign + exponent;
            is_float = true;
        }
    }
    is_float.then_some(len)
}

/// Returns the length of a quoted string at the beginning of `text`.
pub fn string_len(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        if char == quote {
            return Some(at + 1);
        }
        if char == '\\' {
            chars.next()?;
        }
    }
    None
}

/// Decodes the escapes of a string without its quotes.
pub(super) fn string(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = rest[at + 1..].chars().next().ok_or("\\ at end of string")?;
        rest = &rest[at + 1 + escape.len_utf8()..];
        match escape {
            '\n' => {}
            '\\' | '\'' | '"' => out.push(escape),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\x0b'),
            '0'..='7' => {
                let tail = rest.bytes().take(2).take_while(|byte| (b'0'..=b'7').contains(byte));
                let (digits, left) = rest.split_at(tail.count());
                out.push(code(&format!("{escape}{digits}"), 8)?);
                rest = left;
            }
            'x' | 'u' | 'U' => {
                let len = match escape {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let digits = rest
                    .get(..len)
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let digits = digits.ok_or_else(|| format!("truncated \\{escape} escape"))?;
                out.push(code(digits, 16)?);
                rest = &rest[len..];
            }
            'N' => return Err("\\N{...} is not supported: write the character itself".into()),
            other => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the character with this code.
fn code(digits: &str, radix: u32) -> Result<char, String> {
    let char = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    char.ok_or_else(|| format!("the escape {digits} is not a character"))
}
