//! Human-readable numbers.

/// Formats a size in decimal units: `8.45 MB`.
pub fn bytes(n: u64) -> String {
    scaled(n as f64, &["B", "kB", "MB", "GB", "TB"], " ")
}

/// Formats a count: `4.20M`.
pub fn count(n: u64) -> String {
    scaled(n as f64, &["", "K", "M", "B", "T"], "")
}

/// Formats two sizes for comparison: in bytes if both would look equal.
///
/// ```
/// use gguf::units::distinct_sizes;
/// assert_eq!(distinct_sizes(2_000_000, 8_446_368), ["2.00 MB", "8.45 MB"]);
/// assert_eq!(distinct_sizes(8_446_368, 8_446_370), ["8446368 bytes", "8446370 bytes"]);
/// ```
pub fn distinct_sizes(a: u64, b: u64) -> [String; 2] {
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
