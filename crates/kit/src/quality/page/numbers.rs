//! Numbers as the page shows them.

/// With so many digits that say something, and no power of ten.
pub(super) fn significant(number: f64, digits: i32) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let decimals = (digits - 1 - number.abs().log10().floor() as i32).clamp(0, 12);
    format!("{number:.*}", decimals as usize)
}

/// A place in a picture, to a tenth of a point.
pub(super) fn tidy(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        for (number, digits, said) in [
            (0.0000411, 3, "0.0000411"),
            (0.0117, 2, "0.012"),
            (1.35, 3, "1.35"),
            (123.4, 2, "123"),
            (0.0, 3, "0"),
            (0.001, 1, "0.001"),
        ] {
            assert_eq!(significant(number, digits), said);
        }
    }
}
