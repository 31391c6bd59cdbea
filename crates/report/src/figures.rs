//! Formatting of numbers.

/// Formats a number with `digits` significant digits, without an exponent.
pub(crate) fn significant(number: f64, digits: i32) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let decimals = (digits - 1 - number.abs().log10().floor() as i32).clamp(0, 12);
    format!("{number:.*}", decimals as usize)
}

/// Rounds a coordinate to a tenth of a point.
pub(crate) fn rounded(coordinate: f64) -> f64 {
    (coordinate * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits() {
        for (number, digits, expected) in [
            (0.0000411, 3, "0.0000411"),
            (0.0117, 2, "0.012"),
            (1.35, 3, "1.35"),
            (123.4, 2, "123"),
            (0.0, 3, "0"),
            (0.001, 1, "0.001"),
        ] {
            assert_eq!(significant(number, digits), expected);
        }
    }
}
