//! Numbers for people: one unit for sizes everywhere.

/// Bytes for people, in decimal units: `8.45 MB`.
pub fn bytes(n: u64) -> String {
    scaled(n as f64, &["B", "kB", "MB", "GB", "TB"], " ")
}

/// A count for people: `4.20M`.
pub fn count(n: u64) -> String {
    scaled(n as f64, &["", "K", "M", "B", "T"], "")
}

/// Two numbers of bytes that are compared, for people: by the byte where both would read the same.
///
/// ```
/// use gguf::units::bytes_apart;
/// assert_eq!(bytes_apart(2_000_000, 8_446_368), ["2.00 MB", "8.45 MB"]);
/// assert_eq!(bytes_apart(8_446_368, 8_446_370), ["8446368 bytes", "8446370 bytes"]);
/// ```
pub fn bytes_apart(a: u64, b: u64) -> [String; 2] {
    match [bytes(a), bytes(b)] {
        [one, other] if one == other => [a, b].map(|n| format!("{n} bytes")),
        both => both,
    }
}

fn scaled(mut value: f64, units: &[&str], space: &str) -> String {
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{value}{space}{}", units[0]),
        _ if value < 9.95 => format!("{value:.2}{space}{}", units[unit]),
        _ => format!("{value:.1}{space}{}", units[unit]),
    }
}
