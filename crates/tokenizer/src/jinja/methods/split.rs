//! Parts of a text.

use super::super::error::{Result, failed};
use super::super::syntax::is_space;
use super::super::value::Value;

/// Returns the number of splits that a limit allows.
fn limit_of(limit: Option<i128>) -> usize {
    match limit {
        Some(limit) if limit >= 0 => usize::try_from(limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}

/// Splits a text at a separator, or at white space, at most `limit` times from the left.
pub fn split<'a>(
    text: &'a str,
    separator: Option<&str>,
    limit: Option<i128>,
) -> Result<Vec<&'a str>> {
    let limit = limit_of(limit);
    let Some(separator) = separator else {
        let mut parts = Vec::new();
        let mut rest = text.trim_start_matches(is_space);
        while !rest.is_empty() {
            let end = rest.find(is_space).unwrap_or(rest.len());
            if parts.len() == limit {
                parts.push(rest);
                break;
            }
            parts.push(&rest[..end]);
            rest = rest[end..].trim_start_matches(is_space);
        }
        return Ok(parts);
    };
    if separator.is_empty() {
        return failed("empty separator");
    }
    Ok(text.splitn(limit.saturating_add(1), separator).collect())
}

/// Splits a text at a separator, or at white space, at most `limit` times from the right.
pub fn rsplit<'a>(
    text: &'a str,
    separator: Option<&str>,
    limit: Option<i128>,
) -> Result<Vec<&'a str>> {
    let limit = limit_of(limit);
    let mut parts = Vec::new();
    match separator {
        None => {
            let mut rest = text.trim_end_matches(is_space);
            while !rest.is_empty() {
                if parts.len() == limit {
                    parts.push(rest);
                    break;
                }
                let start = rest
                    .char_indices()
                    .rev()
                    .find(|(_, char)| is_space(*char))
                    .map_or(0, |(at, char)| at + char.len_utf8());
                parts.push(&rest[start..]);
                rest = rest[..start].trim_end_matches(is_space);
            }
        }
        Some("") => return failed("empty separator"),
        Some(separator) => parts.extend(text.rsplitn(limit.saturating_add(1), separator)),
    }
    parts.reverse();
    Ok(parts)
}

/// Characters that end a line.
pub const LINE_ENDS: [char; 10] =
    ['\n', '\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];

/// Splits a text into lines, with their ends or without.
pub fn lines(text: &str, with_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (end, next) = match rest.find(LINE_ENDS) {
            None => (rest.len(), rest.len()),
            Some(at) if rest[at..].starts_with("\r\n") => (at, at + 2),
            Some(at) => (at, at + rest[at..].chars().next().map_or(0, char::len_utf8)),
        };
        lines.push(&rest[..if with_ends { next } else { end }]);
        rest = &rest[next..];
    }
    lines
}

/// Splits a text at the first or last separator into a tuple of three.
pub fn partition(text: &str, separator: &str, last: bool, is_markup: bool) -> Result<Value> {
    if separator.is_empty() {
        return failed("empty separator");
    }
    let found = if last { text.rsplit_once(separator) } else { text.split_once(separator) };
    let parts = match found {
        Some((before, after)) => [before, separator, after],
        None if last => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::tuple(parts.map(|part| Value::markup(part, is_markup)).into()))
}
