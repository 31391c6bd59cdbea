//! The filter `pprint`: Python's `pprint.pformat`, in lines of at most 80 characters.

use super::super::arguments::Arguments;
use super::super::budget::Budget;
use super::super::error::Result;
use super::super::machine::Machine;
use super::super::methods;
use super::super::value::{Value, repr, repr_text};

const WIDTH: usize = 80;

pub fn pprint(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    arguments.none(name)?;
    let mut out = String::new();
    write(&mut out, value, 0, 0, 0, &machine.budget)?;
    Ok(Value::text(out))
}

/// Keys in the order of `pprint`: sorted, by their texts if they have no order.
fn sorted_pairs(value: &Value, budget: &Budget) -> Result<Vec<(Value, Value)>> {
    let Value::Dict(dict) = value else { return Ok(Vec::new()) };
    let pairs = |key: fn(&Value) -> Value| {
        dict.iter().map(|(k, v)| (key(k), Value::tuple(vec![k.clone(), v.clone()]))).collect()
    };
    let sorted = match methods::sort(pairs(Value::clone), false, budget) {
        Ok(sorted) => sorted,
        Err(_) => methods::sort(pairs(|key| Value::text(key.type_name())), false, budget)?,
    };
    let mut out = Vec::new();
    for pair in sorted {
        if let Value::Tuple(pair) = pair {
            out.push((pair[0].clone(), pair[1].clone()));
        }
    }
    Ok(out)
}

/// Returns `repr` with sorted dictionaries.
fn sorted_repr(value: &Value, budget: &Budget) -> Result<String> {
    let list = |items: &[Value]| -> Result<String> {
        let items = items.iter().map(|item| sorted_repr(item, budget));
        Ok(items.collect::<Result<Vec<_>>>()?.join(", "))
    };
    let text = match value {
        Value::Dict(_) => {
            let pair = |(key, value): (Value, Value)| {
                Ok(format!("{}: {}", sorted_repr(&key, budget)?, sorted_repr(&value, budget)?))
            };
            let pairs = sorted_pairs(value, budget)?.into_iter().map(pair);
            format!("{{{}}}", pairs.collect::<Result<Vec<_>>>()?.join(", "))
        }
        Value::List(items) => format!("[{}]", list(items)?),
        Value::Tuple(items) if items.len() == 1 => format!("({},)", list(items)?),
        Value::Tuple(items) => format!("({})", list(items)?),
        other => repr(other, budget)?,
    };
    // Each level of nesting writes the text once more.
    budget.text(text.len())?;
    Ok(text)
}

/// Writes a value that begins in this column; `allowance` characters follow it.
fn write(
    out: &mut String,
    value: &Value,
    indent: usize,
    allowance: usize,
    depth: usize,
    budget: &Budget,
) -> Result<()> {
    // Checks the depth of the value, too.
    let _ = repr(value, budget)?;
    let flat = sorted_repr(value, budget)?;
    if flat.chars().count() <= (WIDTH).saturating_sub(indent + allowance) {
        out.push_str(&flat);
        return Ok(());
    }
    let column = " ".repeat(indent);
    match value {
        Value::Dict(dict) if dict.len() > 0 => {
            out.push('{');
            let pairs = sorted_pairs(value, budget)?;
            let count = pairs.len();
            for (i, (key, value)) in pairs.into_iter().enumerate() {
                let key = sorted_repr(&key, budget)?;
                let last = i + 1 == count;
                out.push_str(&key);
                out.push_str(": ");
                let at = indent + key.chars().count() + 3;
                write(out, &value, at, if last { allowance + 1 } else { 1 }, depth + 1, budget)?;
                if !last {
                    budget.text(column.len())?;
                    out.push_str(&format!(",\n{column} "));
                }
            }
            out.push('}');
        }
        Value::List(items) | Value::Tuple(items) if !items.is_empty() => {
            let is_list = matches!(value, Value::List(_));
            let end = match (is_list, items.len()) {
                (true, _) => "]",
                (false, 1) => ",)",
                _ => ")",
            };
            out.push(if is_list { '[' } else { '(' });
            for (i, item) in items.iter().enumerate() {
                let last = i + 1 == items.len();
                let after = if last { allowance + end.len() } else { 1 };
                write(out, item, indent + 1, after, depth + 1, budget)?;
                if !last {
                    budget.text(column.len())?;
                    out.push_str(&format!(",\n{column} "));
                }
            }
            out.push_str(end);
        }
        Value::Text(text) if !text.is_markup => {
            let lines = text.text.len() / WIDTH + text.text.matches('\n').count();
            budget.text(lines.saturating_mul(indent))?;
            write_text(out, &text.text, indent, allowance, depth);
        }
        _ => out.push_str(&flat),
    }
    Ok(())
}

/// Writes a long string as several literals, broken at line ends and after white space.
fn write_text(out: &mut String, text: &str, indent: usize, mut allowance: usize, depth: usize) {
    let mut indent = indent;
    if depth == 0 {
        indent += 1;
        allowance += 1;
    }
    let lines = methods::lines(text, true);
    let mut chunks = Vec::new();
    let count = lines.len();
    for (i, line) in lines.into_iter().enumerate() {
        let last = i + 1 == count;
        let width = WIDTH.saturating_sub(indent + if last { allowance } else { 0 });
        let whole = repr_text(line);
        if whole.chars().count() <= width {
            chunks.push(whole);
            continue;
        }
        // Runs of other characters with the white space after them.
        let mut current = String::new();
        let parts = parts_of(line);
        let part_count = parts.len();
        for (j, part) in parts.into_iter().enumerate() {
            let candidate = format!("{current}{part}");
            let mut room = WIDTH.saturating_sub(indent);
            if j + 1 == part_count && last {
                room = room.saturating_sub(allowance);
            }
            if repr_text(&candidate).chars().count() > room {
                if !current.is_empty() {
                    chunks.push(repr_text(&current));
                }
                current = part.to_owned();
            } else {
                current = candidate;
            }
        }
        if !current.is_empty() {
            chunks.push(repr_text(&current));
        }
    }
    let is_long = chunks.len() > 1;
    if depth == 0 && is_long {
        out.push('(');
    }
    out.push_str(&chunks.join(&format!("\n{}", " ".repeat(indent))));
    if depth == 0 && is_long {
        out.push(')');
    }
}

/// Splits a text after runs of white space.
fn parts_of(text: &str) -> Vec<&str> {
    let is_space = super::super::syntax::is_space;
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(is_space).unwrap_or(rest.len());
        let space = rest[word..].find(|char| !is_space(char)).unwrap_or(rest.len() - word);
        parts.push(&rest[..word + space]);
        rest = &rest[word + space..];
    }
    parts
}
