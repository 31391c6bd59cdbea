//! The function `strftime_now`.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::{Error, ErrorKind};

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Formats `time` in UTC as C's `strftime` in the C locale.
pub fn strftime(time: SystemTime, format: &str) -> Result<String, Error> {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86400, seconds % 86400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let twelve = (hour + 11) % 12 + 1;
    let weekday = DAYS[((days + 4) % 7) as usize];
    let month_name = MONTHS[(month - 1) as usize];

    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        let (letter, is_bare) = match chars.next() {
            Some('-') => (chars.next(), true),
            letter => (letter, false),
        };
        let (number, width) = match letter {
            Some('Y') => (year, 4),
            Some('y') => (year % 100, 2),
            Some('m') => (month, 2),
            Some('d') => (day, 2),
            Some('H') => (hour, 2),
            Some('I') => (twelve, 2),
            Some('M') => (minute, 2),
            Some('S') => (second, 2),
            Some('j') => (days - days_before(year) + 1, 3),
            other => {
                out.push_str(&match other {
                    Some('A') => weekday.to_owned(),
                    Some('a') => weekday[..3].to_owned(),
                    Some('B') => month_name.to_owned(),
                    Some('b' | 'h') => month_name[..3].to_owned(),
                    Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
                    Some('F') => strftime(time, "%Y-%m-%d")?,
                    Some('T') => strftime(time, "%H:%M:%S")?,
                    Some('%') => "%".to_owned(),
                    _ => {
                        let cause = format!("strftime_now does not support the format {format:?}");
                        return Err(Error::new(ErrorKind::InvalidOperation, cause));
                    }
                });
                continue;
            }
        };
        let width = if is_bare { 0 } else { width };
        // Writing to a string cannot fail.
        let _ = write!(out, "{number:0width$}");
    }
    Ok(out)
}

/// Returns year, month and day of the day `days` after 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // An estimate that is never too late, and at most a few years too early.
    let mut year = 1970 + days / 366;
    while days_before(year + 1) <= days {
        year += 1;
    }
    let mut day = days - days_before(year);
    for month in 1..12 {
        let len = match month {
            2 if is_leap(year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if day < len {
            return (year, month, day + 1);
        }
        day -= len;
    }
    (year, 12, day + 1)
}

/// Returns the number of days from 1970-01-01 to the first day of a year not before 1970.
fn days_before(year: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Expected texts printed by Python 3.11.
    #[test]
    fn dates_match_python() {
        let format = "%Y-%m-%d %H:%M:%S %I %p %a %A %b %B %j %y %-d %%";
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 12 AM Thu Thursday Jan January 001 70 1 %"),
            (951827696, "2000-02-29 12:34:56 12 PM Tue Tuesday Feb February 060 00 29 %"),
            (1767225599, "2025-12-31 23:59:59 11 PM Wed Wednesday Dec December 365 25 31 %"),
            (4107542400, "2100-03-01 00:00:00 12 AM Mon Monday Mar March 060 00 1 %"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(strftime(time, format).unwrap(), text);
        }
        assert!(strftime(UNIX_EPOCH, "%Q").is_err());
    }
}
