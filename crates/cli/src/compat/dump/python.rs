//! Formatting of values as in Python.

use std::fmt::Write;

use gguf::Value;

/// Formats a value as `repr` does. Python floats have 64 bits.
pub fn value(value: &Value) -> String {
    match value {
        Value::String(bytes) => repr(&String::from_utf8_lossy(bytes)),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::F32(number) => float(f64::from(*number)),
        Value::F64(number) => float(*number),
        value => value.to_string(),
    }
}

/// Formats a scalar as NumPy does. 32-bit floats use an exponent from a million on.
pub fn numpy(of: &Value) -> String {
    match of {
        Value::F32(number) => {
            let whole = if *number == 0.0 || (1e-4..1e6).contains(&f64::from(number.abs())) {
                16
            } else {
                0
            };
            digits(&format!("{number:e}"), whole)
        }
        of => value(of),
    }
}

/// Formats a number with the fewest digits that identify it.
pub fn float(number: f64) -> String {
    digits(&format!("{number:e}"), 16)
}

/// Converts Rust's scientific notation to Python's: no exponent from 0.0001 up to `whole` digits before the
/// point.
fn digits(scientific: &str, whole: i32) -> String {
    let (sign, rest) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    let Some((mantissa, exponent)) = rest.split_once('e') else {
        return format!("{sign}{}", rest.to_ascii_lowercase());
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let text = match exponent {
        -4..0 if whole > 0 => format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        0.. if exponent < whole => {
            let whole = exponent as usize + 1;
            let padded = format!("{digits:0<whole$}");
            let (whole, part) = padded.split_at(whole);
            format!("{whole}.{}", if part.is_empty() { "0" } else { part })
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{first}{point}{rest}e{sign}{:02}", exponent.abs())
        }
    };
    format!("{sign}{text}")
}

/// Quotes a text as `repr` does.
pub fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut shown = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c == quote => shown.extend(['\\', c]),
            c if is_printable(c) => shown.push(c),
            // Writing to a string cannot fail.
            c if (c as u32) < 0x100 => drop(write!(shown, "\\x{:02x}", c as u32)),
            c if (c as u32) < 0x1_0000 => drop(write!(shown, "\\u{:04x}", c as u32)),
            c => drop(write!(shown, "\\U{:08x}", c as u32)),
        }
    }
    shown.push(quote);
    shown
}

/// Whether Python prints a character unescaped. Rust's escapes use the same Unicode property, except for
/// combining characters.
fn is_printable(c: char) -> bool {
    match c {
        '\'' | '"' | ' ' => true,
        c if c.is_whitespace() || c.is_control() => false,
        // A preceding letter keeps a combining mark from being escaped for that alone.
        c => !format!("a{c}").escape_debug().collect::<String>().contains('\\'),
    }
}

/// Formats a text as `json.dump` does, in ASCII.
pub fn json(text: &str) -> String {
    let mut shown = String::from('"');
    for c in text.chars() {
        match c {
            '"' => shown.push_str("\\\""),
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '\u{8}' => shown.push_str("\\b"),
            '\u{c}' => shown.push_str("\\f"),
            ' '..='~' => shown.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
        }
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_python() {
        for (number, shown) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (1e-5, "1e-05"),
            (f64::from(1e-5f32), "9.999999747378752e-06"),
            (0.0001, "0.0001"),
            (0.00012345, "0.00012345"),
            (10000.0, "10000.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (123.456, "123.456"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float(number), shown);
        }
        for (number, shown) in [
            (1e-5, "1e-05"),
            // As a number of 32 bits it is below 0.0001.
            (1e-4, "1e-04"),
            (0.5, "0.5"),
            (500_000.0, "500000.0"),
            (1e6, "1e+06"),
            (123_456_789.0, "1.2345679e+08"),
            (0.0, "0.0"),
        ] {
            assert_eq!(numpy(&Value::F32(number)), shown);
        }
    }

    #[test]
    fn strings_match_python() {
        for (text, shown) in [
            ("plain", "'plain'"),
            ("it's", "\"it's\""),
            ("it's \"both\"", "'it\\'s \"both\"'"),
            ("a\nb\tc\\", "'a\\nb\\tc\\\\'"),
            ("\u{0}\u{1b}\u{a0}", "'\\x00\\x1b\\xa0'"),
            ("▁é", "'▁é'"),
            ("\u{200b}\u{e000}", "'\\u200b\\ue000'"),
            ("e\u{301}", "'e\u{301}'"),
        ] {
            assert_eq!(repr(text), shown);
        }
        assert_eq!(json("▁\u{1F600}\"\u{7f}"), "\"\\u2581\\ud83d\\ude00\\\"\\u007f\"");
    }
}
