//! Methods of strings.

use std::collections::HashSet;
use std::rc::Rc;

use super::super::arguments::{Arguments, flag, int, optional, required};
use super::super::budget::Budget;
use super::super::error::{Result, failed};
use super::super::format::braces;
use super::super::markup::{escape, strip_tags, unescape};
use super::super::syntax::is_space;
use super::super::value::{Text, Value, is_printable};
use super::{case, search, split};

/// Calls a method of a string. Methods of `Markup` return `Markup`.
pub fn call(receiver: &Text, name: &str, arguments: Arguments, budget: &Budget) -> Result<Value> {
    let text = &*receiver.text;
    let is_markup = receiver.is_markup;
    budget.text(text.len())?;
    let same = |text: String| Ok(Value::markup(text, is_markup));
    let list = |parts: Vec<&str>| {
        Ok(Value::list(parts.into_iter().map(|part| Value::markup(part, is_markup)).collect()))
    };
    // A part becomes a string.
    let pay_parts = |count: usize| budget.list(count.saturating_add(1).saturating_mul(2));
    match name {
        "count" => return search::count(text, arguments),
        "find" | "rfind" | "index" | "rindex" => return search::find(text, name, arguments),
        "startswith" | "endswith" => return search::has_affix(text, name, arguments, budget),
        "strip" | "lstrip" | "rstrip" => {
            let [chars] = arguments.bind(name, [""])?;
            return same(strip(text, name, optional(chars).as_ref())?.to_owned());
        }
        "split" | "rsplit" => {
            let [separator, limit] = arguments.bind(name, ["sep", "maxsplit"])?;
            let separator = optional(separator);
            let separator = separator.as_ref().map(Value::expect_str).transpose()?;
            let limit = int(limit)?;
            pay_parts(match separator {
                Some("") => 0,
                Some(separator) => text.matches(separator).count(),
                None => text.chars().filter(|char| is_space(*char)).count(),
            })?;
            return list(match name {
                "split" => split::split(text, separator, limit)?,
                _ => split::rsplit(text, separator, limit)?,
            });
        }
        "splitlines" => {
            let [with_ends] = arguments.bind(name, ["keepends"])?;
            pay_parts(text.matches(split::LINE_ENDS).count())?;
            return list(split::lines(text, flag(with_ends)));
        }
        "partition" | "rpartition" => {
            let [separator] = arguments.bind(name, [""])?;
            let separator = required(separator, name)?;
            return split::partition(
                text,
                separator.expect_str()?,
                name == "rpartition",
                is_markup,
            );
        }
        "replace" => {
            let [old, new, count] = arguments.bind(name, ["", "", ""])?;
            let (old, new) = (required(old, name)?, required(new, name)?);
            new.expect_str()?;
            let new = if is_markup { escape(&new, budget)? } else { new.expect_str()?.into() };
            return same(search::replace(text, old.expect_str()?, &new, int(count)?, budget)?);
        }
        "removeprefix" | "removesuffix" => {
            let [affix] = arguments.bind(name, [""])?;
            let affix = required(affix, name)?;
            let affix = affix.expect_str()?;
            let rest = match name {
                "removeprefix" => text.strip_prefix(affix),
                _ => text.strip_suffix(affix),
            };
            return same(rest.unwrap_or(text).to_owned());
        }
        "center" | "ljust" | "rjust" => {
            let [width, fill] = arguments.bind(name, ["", ""])?;
            let width = required(width, name)?.expect_int()?;
            let fill = match fill {
                None => " ".into(),
                Some(fill) => {
                    fill.expect_str()?;
                    if is_markup { escape(&fill, budget)? } else { fill.expect_str()?.into() }
                }
            };
            return same(justify(text, name, width, &fill, budget)?);
        }
        "zfill" => {
            let [width] = arguments.bind(name, [""])?;
            let width = required(width, name)?.expect_int()?;
            let sign = if text.starts_with(['+', '-']) { &text[..1] } else { "" };
            let digits = &text[sign.len()..];
            let width = width.saturating_sub(sign.len() as i128);
            return same(format!("{sign}{}", justify(digits, "rjust", width, "0", budget)?));
        }
        "expandtabs" => {
            let [size] = arguments.bind(name, ["tabsize"])?;
            return same(expand_tabs(text, int(size)?.unwrap_or(8), budget)?);
        }
        "join" => {
            let [items] = arguments.bind(name, [""])?;
            return join(receiver, &required(items, name)?, budget);
        }
        "translate" => {
            let [table] = arguments.bind(name, [""])?;
            return same(translate(text, &required(table, name)?, budget)?);
        }
        "format" => {
            return same(braces::format(text, &arguments, is_markup, budget)?);
        }
        "format_map" => {
            let [values] = arguments.bind(name, [""])?;
            let Value::Dict(values) = required(values, name)? else {
                return failed("format_map() needs a dictionary");
            };
            let named = values
                .iter()
                .filter_map(|(key, value)| Some((key.as_str()?.to_owned(), value.clone())));
            let arguments = Arguments { positional: Vec::new(), named: named.collect() };
            return same(braces::format(text, &arguments, is_markup, budget)?);
        }
        _ => {}
    }
    arguments.none(name)?;
    // Case and kind are looked up for each character.
    budget.text(text.len().saturating_mul(4))?;
    Ok(Value::Bool(match name {
        "capitalize" => return same(case::capitalize(text)),
        "casefold" => return same(case::fold(text)),
        "lower" => return same(text.to_lowercase()),
        "swapcase" => return same(case::swap(text)),
        "title" => return same(case::title(text)),
        "upper" => return same(text.to_uppercase()),
        "striptags" => return Ok(Value::text(strip_tags(text))),
        "unescape" => return Ok(Value::text(unescape(text))),
        "isalnum" | "isalpha" | "isdecimal" | "isdigit" | "isnumeric" => case::is_kind(text, name),
        "isascii" => text.is_ascii(),
        "isidentifier" => case::is_identifier(text),
        "islower" => case::is_all(text, false),
        "isprintable" => text.chars().all(is_printable),
        "isspace" => !text.is_empty() && text.chars().all(is_space),
        "istitle" => case::is_title(text),
        "isupper" => case::is_all(text, true),
        _ => return failed(format!("the method {name} of strings is not supported")),
    }))
}

/// Implements `strip`, `lstrip` and `rstrip`.
fn strip<'a>(text: &'a str, name: &str, chars: Option<&Value>) -> Result<&'a str> {
    let chars: Option<HashSet<char>> = match chars {
        Some(chars) => Some(chars.expect_str()?.chars().collect()),
        None => None,
    };
    let matches = |char: char| match &chars {
        Some(chars) => chars.contains(&char),
        None => is_space(char),
    };
    let text = if name == "rstrip" { text } else { text.trim_start_matches(matches) };
    Ok(if name == "lstrip" { text } else { text.trim_end_matches(matches) })
}

/// Implements `center`, `ljust` and `rjust`.
fn justify(text: &str, name: &str, width: i128, fill: &str, budget: &Budget) -> Result<String> {
    if fill.chars().count() != 1 {
        return failed("The fill character must be exactly one character long");
    }
    let len = text.chars().count();
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    let missing = width.saturating_sub(len);
    budget.text(missing.saturating_mul(fill.len()))?;
    // As CPython: the odd one goes to the left if the width is odd.
    let left = match name {
        "center" => missing / 2 + (missing & width & 1),
        "ljust" => 0,
        _ => missing,
    };
    Ok(format!("{}{text}{}", fill.repeat(left), fill.repeat(missing - left)))
}

/// Centers a text in a field of spaces.
pub fn center(text: &str, width: i128, budget: &Budget) -> Result<String> {
    justify(text, "center", width, " ", budget)
}

fn expand_tabs(text: &str, size: i128, budget: &Budget) -> Result<String> {
    let size = usize::try_from(size.max(0)).unwrap_or(usize::MAX);
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for char in text.chars() {
        match char {
            '\t' if size > 0 => {
                let count = size - column % size;
                budget.text(count)?;
                out.push_str(&" ".repeat(count));
                column += count;
            }
            '\t' => {}
            _ => {
                out.push(char);
                column = if char == '\n' || char == '\r' { 0 } else { column + 1 };
            }
        }
    }
    Ok(out)
}

/// Replaces characters by the table of a dictionary from their codes; `None` removes one.
fn translate(text: &str, table: &Value, budget: &Budget) -> Result<String> {
    let Value::Dict(table) = table else { return failed("translate() needs a dictionary") };
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match table.get(&Value::Int(char as i128), budget)? {
            None => out.push(char),
            Some(Value::None) => {}
            Some(Value::Text(text)) => {
                budget.text(text.text.len())?;
                out.push_str(&text.text);
            }
            Some(code) => match u32::try_from(code.expect_int()?).ok().and_then(char::from_u32) {
                Some(char) => out.push(char),
                None => return failed("character mapping must be in range(0x110000)"),
            },
        }
    }
    Ok(out)
}

fn join(separator: &Text, items: &Value, budget: &Budget) -> Result<Value> {
    let mut out = String::new();
    for (i, item) in items.items(budget)?.iter().enumerate() {
        let text: Rc<str> = match separator.is_markup {
            true => escape(item, budget)?,
            false => match item.as_str() {
                Some(text) => text.into(),
                None => {
                    return failed(format!(
                        "sequence item {i}: expected str instance, {} found",
                        item.type_name()
                    ));
                }
            },
        };
        budget.text(text.len() + separator.text.len())?;
        if i > 0 {
            out.push_str(&separator.text);
        }
        out.push_str(&text);
    }
    Ok(Value::markup(out, separator.is_markup))
}
