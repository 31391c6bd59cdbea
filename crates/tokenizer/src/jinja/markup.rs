//! HTML: escapes as `markupsafe`.

use std::rc::Rc;

use super::budget::Budget;
use super::error::Result;
use super::syntax::is_space;
use super::value::{Value, text_of};

/// Escapes the five characters that HTML needs.
pub fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '>' => out.push_str("&gt;"),
            '<' => out.push_str("&lt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            _ => out.push(char),
        }
    }
    out
}

/// Returns the text of a value, escaped unless it is `Markup`.
pub fn escape(value: &Value, budget: &Budget) -> Result<Rc<str>> {
    let text = text_of(value, budget)?;
    budget.text(text.len())?;
    Ok(if value.is_markup() { text } else { escape_text(&text).into() })
}

/// Removes tags and comments, collapses white space, and decodes entities.
pub fn strip_tags(text: &str) -> String {
    let mut parts = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let tag = &rest[start..];
        let len = match tag.starts_with("<!--") {
            true => tag[4..].find("-->").map(|end| end + 7),
            false => tag.find('>').map(|end| end + 1),
        };
        let Some(len) = len else { break };
        parts.push_str(&rest[..start]);
        rest = &tag[len..];
    }
    parts.push_str(rest);
    let words: Vec<_> = parts.split(is_space).filter(|word| !word.is_empty()).collect();
    unescape(&words.join(" "))
}

/// Decodes entities, as Python's `html.unescape`.
pub fn unescape(text: &str) -> String {
    htmlize::unescape(text).into_owned()
}
