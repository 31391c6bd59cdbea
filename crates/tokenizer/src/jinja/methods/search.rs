//! Search and replacement in a text, whose places are counted in characters.

use super::super::arguments::{Arguments, int, optional, required};
use super::super::budget::Budget;
use super::super::error::{Result, failed};
use super::super::value::Value;

/// A part of a text that begins and ends at characters.
struct Part<'a> {
    text: &'a str,
    /// Characters before it.
    start: usize,
    /// Whether the part exists: its beginning is within the text and not after its end.
    exists: bool,
}

fn part(text: &str, start: Option<Value>, stop: Option<Value>) -> Result<Part<'_>> {
    let (start, stop) = (int(optional(start))?, int(optional(stop))?);
    if start.is_none() && stop.is_none() {
        return Ok(Part { text, start: 0, exists: true });
    }
    let len = text.chars().count() as i128;
    let bound = |bound: i128| (if bound < 0 { bound.saturating_add(len) } else { bound }).max(0);
    let (start, stop) = (bound(start.unwrap_or(0)), bound(stop.unwrap_or(len)).min(len));
    if start > stop {
        return Ok(Part { text: "", start: 0, exists: false });
    }
    let byte =
        |place: i128| text.char_indices().nth(place as usize).map_or(text.len(), |(at, _)| at);
    Ok(Part { text: &text[byte(start)..byte(stop)], start: start as usize, exists: true })
}

/// Implements `find`, `rfind`, `index` and `rindex`.
pub fn find(text: &str, name: &str, arguments: Arguments) -> Result<Value> {
    let [what, start, stop] = arguments.bind(name, ["", "", ""])?;
    let what = required(what, name)?;
    let part = part(text, start, stop)?;
    let what = what.expect_str()?;
    let found = match part.exists {
        true if name.starts_with('r') => part.text.rfind(what),
        true => part.text.find(what),
        false => None,
    };
    match found {
        Some(at) => Ok(Value::Int((part.start + part.text[..at].chars().count()) as i128)),
        None if name.ends_with("index") => failed("substring not found"),
        None => Ok(Value::Int(-1)),
    }
}

/// Implements `count`.
pub fn count(text: &str, arguments: Arguments) -> Result<Value> {
    let [what, start, stop] = arguments.bind("count", ["", "", ""])?;
    let what = required(what, "count")?;
    let part = part(text, start, stop)?;
    let count = if part.exists { part.text.matches(what.expect_str()?).count() } else { 0 };
    Ok(Value::Int(count as i128))
}

/// Implements `startswith` and `endswith`.
pub fn has_affix(text: &str, name: &str, arguments: Arguments, budget: &Budget) -> Result<Value> {
    let [affix, start, stop] = arguments.bind(name, ["", "", ""])?;
    let affix = required(affix, name)?;
    let part = part(text, start, stop)?;
    let has = |affix: &Value| {
        let affix = affix.expect_str()?;
        budget.text(affix.len())?;
        Ok(part.exists
            && match name {
                "startswith" => part.text.starts_with(affix),
                _ => part.text.ends_with(affix),
            })
    };
    if let Value::Tuple(affixes) = &affix {
        for affix in affixes.iter() {
            if has(affix)? {
                return Ok(Value::Bool(true));
            }
        }
        return Ok(Value::Bool(false));
    }
    Ok(Value::Bool(has(&affix)?))
}

/// Replaces a text by another, at most `count` times if `count` is not negative.
pub fn replace(
    text: &str,
    old: &str,
    new: &str,
    count: Option<i128>,
    budget: &Budget,
) -> Result<String> {
    let limit = match count {
        Some(count) if count >= 0 => usize::try_from(count).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    budget.text(text.len())?;
    let matches = match old.is_empty() {
        true => text.chars().count() + 1,
        false => text.matches(old).count(),
    };
    budget.text(matches.min(limit).saturating_mul(new.len()))?;
    Ok(text.replacen(old, new, limit))
}
