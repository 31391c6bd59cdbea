//! Floats as Python prints them.

/// Returns the fewest digits that round-trip, with an exponent below 1e-4 and from 1e16 on.
pub fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
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
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(float_repr(value), text);
        }
    }
}
