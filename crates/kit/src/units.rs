//! Numbers for people.

/// Bytes for people, in decimal units: `8.4 MB`.
pub fn bytes(n: u64) -> String {
    scaled(n as f64, &["B", "kB", "MB", "GB", "TB"], " ")
}

/// A count for people: `4.2M`.
pub fn count(n: u64) -> String {
    scaled(n as f64, &["", "K", "M", "B", "T"], "")
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
