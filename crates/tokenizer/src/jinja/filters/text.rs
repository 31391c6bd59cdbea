//! Filters of texts.

use std::rc::Rc;

use super::super::arguments::{Arguments, flag, int, optional, required};
use super::super::error::{Result, failed};
use super::super::format::percent;
use super::super::machine::Machine;
use super::super::markup::escape;
use super::super::methods;
use super::super::value::{Dict, Text, Value, text_of};

/// Converts a value to a string; `Markup` stays so.
fn soft_text(value: &Value, machine: &Machine) -> Result<Text> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        other => Ok(Text { text: text_of(other, &machine.budget)?, is_markup: false }),
    }
}

/// Implements `capitalize`, `lower`, `title` and `upper`.
pub fn change(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    let Text { text, is_markup } = soft_text(value, machine)?;
    machine.budget.text(text.len().saturating_mul(4))?;
    Ok(match name {
        "capitalize" => Value::markup(methods::capitalize(&text), is_markup),
        "lower" => Value::markup(text.to_lowercase(), is_markup),
        "upper" => Value::markup(text.to_uppercase(), is_markup),
        _ => Value::text(title(&text)),
    })
}

/// Converts each word to lower case but for its first character; unlike `str.title`, words end
/// at white space, hyphens and opening brackets only.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let ends_word = |char: char| "-({[<".contains(char) || super::super::syntax::is_space(char);
    let flush = |word: &mut String, out: &mut String| {
        let mut chars = word.chars();
        if let Some(first) = chars.next() {
            out.extend(first.to_uppercase());
            out.push_str(&chars.as_str().to_lowercase());
        }
        word.clear();
    };
    for char in text.chars() {
        if ends_word(char) {
            flush(&mut word, &mut out);
            out.push(char);
        } else {
            word.push(char);
        }
    }
    flush(&mut word, &mut out);
    out
}

pub fn string(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    Ok(Value::Text(soft_text(value, machine)?))
}

pub fn trim(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let [chars] = arguments.bind(name, ["chars"])?;
    let text = Value::Text(soft_text(value, machine)?);
    let arguments = Arguments { positional: vec![chars.unwrap_or(Value::None)], named: Vec::new() };
    methods::call(&text, "strip", arguments, &machine.budget)
}

pub fn center(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let [width] = arguments.bind(name, ["width"])?;
    let Text { text, is_markup } = soft_text(value, machine)?;
    let width = int(width)?.unwrap_or(80);
    Ok(Value::markup(methods::center(&text, width, &machine.budget)?, is_markup))
}

pub fn format(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let Text { text, is_markup } = soft_text(value, machine)?;
    let Arguments { positional, named } = arguments;
    if !positional.is_empty() && !named.is_empty() {
        return failed(format!(
            "{name} can't handle positional and keyword arguments at the same time"
        ));
    }
    let values = match named.is_empty() {
        true => Value::tuple(positional),
        false => Value::Dict(Rc::new(Dict::from_texts(
            named.iter().map(|(name, value)| (name.as_str(), value.clone())),
        ))),
    };
    let text = percent::format(&text, &values, is_markup, &machine.budget)?;
    Ok(Value::markup(text, is_markup))
}

pub fn replace(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    let budget = &machine.budget;
    let [old, new, count] = arguments.bind(name, ["old", "new", "count"])?;
    let (old, new) = (required(old, name)?, required(new, name)?);
    let count = int(optional(count))?;
    let autoescape = machine.autoescape.get();
    let is_markup = autoescape && (value.is_markup() || old.is_markup() || new.is_markup());
    let text = match autoescape && is_markup && !value.is_markup() {
        true => escape(value, budget)?,
        false => text_of(value, budget)?,
    };
    let new = match is_markup {
        true => escape(&new, budget)?,
        false => text_of(&new, budget)?,
    };
    let old = text_of(&old, budget)?;
    Ok(Value::markup(methods::replace(&text, &old, &new, count, budget)?, is_markup))
}

pub fn indent(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let budget = &machine.budget;
    let [width, first, blank] = arguments.bind(name, ["width", "first", "blank"])?;
    let Value::Text(Text { text, is_markup }) = value else {
        value.defined()?;
        return failed(format!("{name} needs a string, not {}", value.type_name()));
    };
    let indention: Rc<str> = match width {
        Some(Value::Text(text)) => text.text,
        other => {
            let width = int(other)?.unwrap_or(4);
            let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
            budget.text(width)?;
            " ".repeat(width).into()
        }
    };
    // Jinja adds a line break before it splits, so that a last one makes an empty line.
    let with_end = format!("{text}\n");
    let lines = methods::lines(&with_end, false);
    budget.text(lines.len().saturating_mul(indention.len()).saturating_add(text.len()))?;
    let blank = flag(blank);
    let mut out = String::new();
    for (i, line) in lines.into_iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        if i > 0 && (blank || !line.is_empty()) {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    if flag(first) {
        out.insert_str(0, &indention);
    }
    Ok(Value::markup(out, *is_markup))
}

pub fn truncate(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    let [length, killwords, end, leeway] =
        arguments.bind(name, ["length", "killwords", "end", "leeway"])?;
    let Some(len) = value.len() else {
        return failed(format!("object of type '{}' has no len()", value.type_name()));
    };
    let length = int(length)?.unwrap_or(255);
    let end = end.unwrap_or_else(|| Value::text("..."));
    let end_len = end.expect_str()?.chars().count() as i128;
    let leeway = int(optional(leeway))?.unwrap_or(5);
    if length < end_len || leeway < 0 {
        return failed(format!(
            "expected length >= {end_len} and leeway >= 0, got {length} and {leeway}"
        ));
    }
    if len as i128 <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let text = value.expect_str()?;
    machine.budget.text(text.len())?;
    let kept: String = text.chars().take((length - end_len) as usize).collect();
    let kept = match flag(killwords) {
        true => &kept,
        false => kept.rsplit_once(' ').map_or(&*kept, |(before, _)| before),
    };
    let kept = Value::markup(kept, value.is_markup());
    super::super::operators::binary(
        super::super::syntax::tree::Binary::Add,
        &kept,
        &end,
        &machine.budget,
    )
}

pub fn wordcount(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    arguments.none(name)?;
    let text = soft_text(value, machine)?.text;
    machine.budget.text(text.len())?;
    let words = text.split(|char: char| char != '_' && !char.is_alphanumeric());
    Ok(Value::Int(words.filter(|word| !word.is_empty()).count() as i128))
}
