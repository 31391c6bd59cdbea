//! The filter `wordwrap`, with the rules of Python's `textwrap`.

use super::super::arguments::{Arguments, int, optional};
use super::super::error::{Result, failed};
use super::super::machine::Machine;
use super::super::methods;
use super::super::value::{Value, text_of};

pub fn wordwrap(
    name: &str,
    value: &Value,
    arguments: Arguments,
    machine: &Machine,
) -> Result<Value> {
    let names = ["width", "break_long_words", "wrapstring", "break_on_hyphens"];
    let [width, long_words, separator, hyphens] = arguments.bind(name, names)?;
    let text = value.expect_str()?;
    let width = int(width)?.unwrap_or(79);
    let Some(width) = usize::try_from(width).ok().filter(|width| *width > 0) else {
        return failed(format!("invalid width {width} (must be > 0)"));
    };
    let by_default = |flag: Option<Value>| flag.is_none_or(|flag| flag.is_true());
    let (long_words, hyphens) = (by_default(long_words), by_default(hyphens));
    let separator = match optional(separator) {
        Some(separator) => text_of(&separator, &machine.budget)?,
        None => "\n".into(),
    };
    let lines = methods::lines(text, false);
    machine.budget.text(text.len().saturating_mul(separator.len() + 16))?;
    let lines: Vec<String> = lines
        .into_iter()
        .map(|line| wrap(line, width, long_words, hyphens).join(&*separator))
        .collect();
    Ok(Value::text(lines.join(&*separator)))
}

/// White space of `textwrap`: that of ASCII only.
fn is_blank(char: char) -> bool {
    "\t\n\x0b\x0c\r ".contains(char)
}

/// Wraps a line.
fn wrap(line: &str, width: usize, long_words: bool, hyphens: bool) -> Vec<String> {
    let line: Vec<char> = line.chars().collect();
    let mut chunks: Vec<&[char]> = Vec::new();
    for chunk in chunks_of(&line) {
        if hyphens && !is_blank(chunk[0]) {
            chunks.extend(hyphenated(chunk));
        } else {
            chunks.push(chunk);
        }
    }
    chunks.reverse();
    let is_space = |chunk: &&[char]| chunk.iter().all(|char| is_blank(*char));
    let mut lines: Vec<String> = Vec::new();
    while !chunks.is_empty() {
        if !lines.is_empty() && chunks.last().is_some_and(is_space) {
            chunks.pop();
        }
        let mut current: Vec<&[char]> = Vec::new();
        let mut len = 0;
        while let Some(chunk) = chunks.last()
            && len + chunk.len() <= width
        {
            len += chunk.len();
            current.extend(chunks.pop());
        }
        if let Some(chunk) = chunks.last_mut()
            && chunk.len() > width
        {
            if long_words {
                let mut end = width - len;
                // A break after a hyphen is better, unless nothing else is before it.
                if hyphens && chunk.len() > end {
                    let hyphen = chunk[..end].iter().rposition(|char| *char == '-');
                    if let Some(at) =
                        hyphen.filter(|at| chunk[..*at].iter().any(|c| *c != '-') && *at > 0)
                    {
                        end = at + 1;
                    }
                }
                let (head, rest) = chunk.split_at(end);
                current.push(head);
                *chunk = rest;
            } else if current.is_empty() {
                current.extend(chunks.pop());
            }
        }
        if current.last().is_some_and(is_space) {
            current.pop();
        }
        if !current.is_empty() {
            lines.push(current.concat().into_iter().collect());
        }
    }
    lines
}

/// Splits a line into runs of white space and of other characters.
fn chunks_of(line: &[char]) -> impl Iterator<Item = &[char]> {
    line.chunk_by(|left, right| is_blank(*left) == is_blank(*right))
}

/// Splits a word after hyphens between letters, and around dashes of two or more hyphens.
fn hyphenated(chars: &[char]) -> Vec<&[char]> {
    let is_letter = |at: usize| chars.get(at).is_some_and(|char| char.is_alphabetic());
    let is_word = |at: usize| {
        chars.get(at).is_some_and(|char| char.is_alphanumeric() || "_!\"'&.,?".contains(*char))
    };
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < chars.len() {
        if chars[at] != '-' {
            at += 1;
            continue;
        }
        let end = at + chars[at..].iter().take_while(|char| **char == '-').count();
        if end - at == 1 {
            let is_compound = at >= start + 2 && is_letter(at - 1) && is_letter(at - 2)
                || at > start && is_letter(at - 1) && at >= 2 && chars[at - 2] == '-';
            if is_compound
                && is_letter(at + 1)
                && (is_letter(at + 2) || chars.get(at + 2) == Some(&'-'))
            {
                parts.push(&chars[start..end]);
                start = end;
            }
        } else if at > start
            && is_word(at - 1)
            && chars.get(end).is_some_and(|c| c.is_alphanumeric() || *c == '_')
        {
            parts.push(&chars[start..at]);
            parts.push(&chars[at..end]);
            start = end;
        }
        at = end;
    }
    if start < chars.len() {
        parts.push(&chars[start..]);
    }
    parts
}
