//! The function `strftime_now`.

use std::time::{SystemTime, UNIX_EPOCH};

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

/// Formats `time` in UTC as Python's `strftime` of a time without zone, on Linux in the C locale.
/// The flags `-`, `_`, `0`, `^` and `#` and widths are those of glibc; formats that it does not
/// know stay as they are.
pub fn strftime(time: SystemTime, format: &str) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = Time::new(since.as_secs(), since.subsec_micros());
    let mut out = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let directive = &rest[at..];
        let flags_len = directive[1..].find(|char| !"-_0^#".contains(char));
        let flags = &directive[1..1 + flags_len.unwrap_or(directive.len() - 1)];
        let after = &directive[1 + flags.len()..];
        let digits =
            after.len() - after.trim_start_matches(|char: char| char.is_ascii_digit()).len();
        let letter_at = &after[digits..];
        let letter_at = letter_at.strip_prefix(['E', 'O']).unwrap_or(letter_at);
        let letter = letter_at.chars().next();
        let field = letter.and_then(|letter| time.field(letter));
        let len = directive.len() - letter_at.len() + letter.map_or(0, char::len_utf8);
        match field {
            Some(field) => {
                let width = after[..digits].parse::<usize>().ok();
                field.write(&mut out, flags, width.map(|width| width.min(MAX_WIDTH)));
            }
            None => out.push_str(&directive[..len]),
        }
        rest = &directive[len..];
    }
    out.push_str(rest);
    out
}

/// Maximum width of a field.
pub const MAX_WIDTH: usize = 1000;

/// A part of a time.
enum Field {
    /// A number, its width and its padding.
    Number(u64, usize, char),
    Text(String),
}

impl Field {
    fn write(self, out: &mut String, flags: &str, width: Option<usize>) {
        let (text, default_width, mut pad) = match self {
            Self::Number(number, width, pad) => (number.to_string(), width, Some(pad)),
            Self::Text(text) => (text, 0, Some(' ')),
        };
        let mut text = text;
        for flag in flags.chars() {
            match flag {
                '-' => pad = None,
                '_' => pad = Some(' '),
                '0' => pad = Some('0'),
                '^' => text = text.to_uppercase(),
                _ if text == "AM" || text == "PM" => text = text.to_lowercase(),
                _ => text = text.to_uppercase(),
            }
        }
        if let Some(pad) = pad {
            let missing = width.unwrap_or(default_width).saturating_sub(text.len());
            out.extend(std::iter::repeat_n(pad, missing));
        }
        out.push_str(&text);
    }
}

/// A time in UTC.
struct Time {
    year: u64,
    month: u64,
    day: u64,
    /// Day of the year, from 0.
    year_day: u64,
    /// Day of the week, from Sunday.
    weekday: u64,
    hour: u64,
    minute: u64,
    second: u64,
    microsecond: u32,
    /// Seconds since 1970.
    timestamp: u64,
}

impl Time {
    fn new(timestamp: u64, microsecond: u32) -> Self {
        let (days, second) = (timestamp / 86400, timestamp % 86400);
        let (year, month, day) = civil(days);
        Self {
            year,
            month,
            day,
            year_day: days - days_before(year),
            weekday: (days + 4) % 7,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            microsecond,
            timestamp,
        }
    }

    /// Returns year and week of ISO 8601, whose weeks begin on Monday.
    fn iso_week(&self) -> (u64, u64) {
        let weekday = (self.weekday + 6) % 7;
        // The week belongs to the year of its Thursday.
        let thursday = (self.year_day + 3) as i64 - weekday as i64;
        let len = |year| 365 + u64::from(is_leap(year));
        if thursday < 0 {
            let day = (thursday + len(self.year - 1) as i64) as u64;
            return (self.year - 1, day / 7 + 1);
        }
        match thursday as u64 {
            day if day >= len(self.year) => (self.year + 1, (day - len(self.year)) / 7 + 1),
            day => (self.year, day / 7 + 1),
        }
    }

    /// Returns the field of this letter.
    fn field(&self, letter: char) -> Option<Field> {
        let weekday = DAYS[self.weekday as usize];
        let month = MONTHS[self.month as usize - 1];
        let twelve = (self.hour + 11) % 12 + 1;
        let am = if self.hour < 12 { "AM" } else { "PM" };
        let (iso_year, iso_week) = self.iso_week();
        let composed = |format: &str| {
            let mut out = String::new();
            for letter in format.chars() {
                match self.field(letter).filter(|_| letter.is_ascii_alphabetic()) {
                    Some(field) => field.write(&mut out, "", None),
                    None => out.push(letter),
                }
            }
            Field::Text(out)
        };
        let number = |number, width| Field::Number(number, width, '0');
        Some(match letter {
            'Y' => number(self.year, 0),
            'C' => number(self.year / 100, 2),
            'y' => number(self.year % 100, 2),
            'G' => number(iso_year, 0),
            'g' => number(iso_year % 100, 2),
            'm' => number(self.month, 2),
            'd' => number(self.day, 2),
            'e' => Field::Number(self.day, 2, ' '),
            'H' => number(self.hour, 2),
            'k' => Field::Number(self.hour, 2, ' '),
            'I' => number(twelve, 2),
            'l' => Field::Number(twelve, 2, ' '),
            'M' => number(self.minute, 2),
            'S' => number(self.second, 2),
            'f' => number(self.microsecond.into(), 6),
            's' => number(self.timestamp, 0),
            'j' => number(self.year_day + 1, 3),
            'U' => number((self.year_day + 7 - self.weekday) / 7, 2),
            'W' => number((self.year_day + 7 - (self.weekday + 6) % 7) / 7, 2),
            'V' => number(iso_week, 2),
            'u' => number((self.weekday + 6) % 7 + 1, 0),
            'w' => number(self.weekday, 0),
            'A' => Field::Text(weekday.to_owned()),
            'a' => Field::Text(weekday[..3].to_owned()),
            'B' => Field::Text(month.to_owned()),
            'b' | 'h' => Field::Text(month[..3].to_owned()),
            'p' => Field::Text(am.to_owned()),
            'P' => Field::Text(am.to_lowercase()),
            'c' => composed("a b e H:M:S Y"),
            'x' | 'D' => composed("m/d/y"),
            'X' | 'T' => composed("H:M:S"),
            'r' => composed("I:M:S p"),
            'R' => composed("H:M"),
            'F' => composed("Y-m-d"),
            'n' => Field::Text("\n".to_owned()),
            't' => Field::Text("\t".to_owned()),
            'z' | 'Z' => Field::Text(String::new()),
            '%' => Field::Text("%".to_owned()),
            _ => return None,
        })
    }
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
            assert_eq!(strftime(time, format), text);
        }
        assert_eq!(strftime(UNIX_EPOCH, "%Q %-e% _d%"), "%Q 1% _d%");
    }
}
