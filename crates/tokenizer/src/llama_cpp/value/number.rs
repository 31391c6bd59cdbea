//! Numbers as C++ converts and prints them.

/// Converts a float as x86-64 does: without its fraction, and to the least integer if it does not fit.
pub fn to_int(value: f64) -> i64 {
    if value >= -(2f64.powi(63)) && value < 2f64.powi(63) { value as i64 } else { i64::MIN }
}

/// Converts an integer to the float that operators use: infinite if the float is another number.
pub fn int_as_float(value: i64) -> f64 {
    let float = value as f64;
    match to_int(float) == value {
        true => float,
        false if value < 0 => f64::NEG_INFINITY,
        false => f64::INFINITY,
    }
}

/// Prints a float with at most six decimals (`std::to_string` without trailing zeros).
pub fn float_text(value: f64) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

/// Prints a float with six significant digits (`std::ostream`), as JSON has it.
pub fn float_json(value: f64) -> String {
    const DIGITS: i32 = 6;
    if !value.is_finite() {
        return not_finite(value);
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        let decimals = (DIGITS - 1 - exponent).max(0) as usize;
        return trimmed(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

fn not_finite(value: f64) -> String {
    let name = if value.is_nan() { "nan" } else { "inf" };
    if value.is_sign_negative() { format!("-{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_cpp() {
        for (value, text, json) in [
            (1.0, "1.0", "1"),
            (0.1, "0.1", "0.1"),
            (1.0 / 3.0, "0.333333", "0.333333"),
            (1_234_567.0, "1234567.0", "1.23457e+06"),
            (0.00001, "0.00001", "1e-05"),
            (100_000.0, "100000.0", "100000"),
            (-2.5, "-2.5", "-2.5"),
            (f64::INFINITY, "inf", "inf"),
        ] {
            assert_eq!((float_text(value).as_str(), float_json(value).as_str()), (text, json));
        }
        assert_eq!(float_text(0.000_000_1), "0.0");
    }

    #[test]
    fn integers_beyond_floats_are_infinite() {
        assert_eq!(int_as_float(1 << 53), 9_007_199_254_740_992.0);
        assert_eq!(int_as_float((1 << 53) + 1), f64::INFINITY);
        assert_eq!(to_int(f64::INFINITY), i64::MIN);
    }
}
