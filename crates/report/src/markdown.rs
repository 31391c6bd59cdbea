//! Markdown and YAML with values of untrusted files.
//!
//! Text is escaped so that it stays text in GitHub-flavored Markdown: it can neither format, nor link, nor break out of its
//! table cell.

use std::fmt::Write;

/// Characters that begin formatting, links, HTML, entities, mentions or formulas.
const SPECIAL: &[char] = &['\\', '`', '*', '_', '[', ']', '<', '>', '|', '~', '&', '$', '@', '^'];

/// Escapes text for a paragraph or a table cell: one line without formatting.
pub(crate) fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        if SPECIAL.contains(&c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    // Addresses become links by themselves.
    let mut escaped = escaped.replace("://", ":\\//").replace("www.", "www\\.");
    // A marker of a list or a heading begins a line.
    if escaped.starts_with(['#', '-', '+', '=', ':']) {
        escaped.insert(0, '\\');
    } else if let Some(digits) = escaped.find(|c: char| !c.is_ascii_digit()).filter(|&at| at > 0)
        && escaped[digits..].starts_with(['.', ')'])
    {
        escaped.insert(digits, '\\');
    }
    escaped
}

/// Formats text as code. In a table cell, `|` is escaped in code too.
pub(crate) fn code(text: &str) -> String {
    let text = one_line(text);
    if text.is_empty() {
        return String::new();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Formats code for a table cell.
pub(crate) fn code_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Formats lines as a block of code.
pub(crate) fn code_block(language: &str, lines: &str) -> String {
    let longest = lines.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", lines.trim_end())
}

/// Returns a relative path as the target of a link.
pub(crate) fn link_target(path: &str) -> String {
    let mut target = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                target.push(byte.into());
            }
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(target, "%{byte:02X}");
            }
        }
    }
    target
}

/// Returns an address as the target of a link; `None` unless it is of the web.
pub(crate) fn web_address(address: &str) -> Option<String> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/?#=&%+:,@!".contains(c);
    (!rest.is_empty() && rest.chars().all(is_plain)).then(|| address.to_owned())
}

/// Replaces line breaks by spaces, and characters that are invisible or control the direction of text by U+FFFD.
fn one_line(text: &str) -> String {
    let replaced = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_invisible(c) => '\u{fffd}',
        c => c,
    };
    text.trim().chars().map(replaced).collect()
}

/// Whether a character controls the text around it instead of being seen.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Formats a YAML scalar: plain where no reader takes it for something other than text, otherwise in double quotes.
pub(crate) fn yaml_scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && !WORDS.contains(&&*text.to_lowercase());
    if is_plain {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // Writing to a string cannot fail.
            c if is_invisible(c) && u32::from(c) > 0xffff => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(c));
            }
            c if is_invisible(c) => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Formats an entry of the front matter.
pub(crate) fn yaml_entry(name: &str, value: &str) -> String {
    format!("{name}: {}\n", yaml_scalar(value))
}

/// Formats a list of the front matter; nothing if it is empty.
pub(crate) fn yaml_list<T: AsRef<str>>(name: &str, items: &[T]) -> String {
    let item = |item: &T| format!("- {}\n", yaml_scalar(item.as_ref()));
    match items {
        [] => String::new(),
        items => format!("{name}:\n{}", items.iter().map(item).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_format() {
        for (plain, escaped) in [
            ("Llama-3.2-1B", "Llama-3.2-1B"),
            ("a|b\n<script>", r"a\|b \<script\>"),
            ("[x](http://e.org)", r"\[x\](http:\//e.org)"),
            ("www.e.org *b* `c`", r"www\.e.org \*b\* \`c\`"),
            ("- item", r"\- item"),
            ("# item", r"\# item"),
            ("12. item", r"12\. item"),
            ("12.5", r"12\.5"),
            ("a\u{202e}b\u{200b}", "a\u{fffd}b\u{fffd}"),
            ("&lt; @me $x$", r"\&lt; \@me \$x\$"),
        ] {
            assert_eq!(text(plain), escaped);
        }
    }

    #[test]
    fn code_cannot_end_early() {
        assert_eq!(code("Q4_K_M"), "`Q4_K_M`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("``"), "``` `` ```");
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(code_cell("a|b"), "`a\\|b`");
        assert_eq!(code_block("sh", "a ``` b\n"), "````sh\na ``` b\n````\n");
    }

    #[test]
    fn targets_of_links_are_encoded() {
        assert_eq!(link_target("a b/ü).gguf"), "a%20b/%C3%BC%29.gguf");
        assert_eq!(web_address("https://e.org/a?b#c").as_deref(), Some("https://e.org/a?b#c"));
        for refused in ["javascript:alert(1)", "https://", "https://e.org/)", "https://e.org/<"] {
            assert_eq!(web_address(refused), None, "{refused}");
        }
    }

    #[test]
    fn yaml_scalars_are_quoted_where_needed() {
        for (plain, scalar) in [
            ("apache-2.0", "apache-2.0"),
            ("a: b", "\"a: b\""),
            ("no", "\"no\""),
            ("N", "\"N\""),
            ("1.0", "\"1.0\""),
            ("", "\"\""),
            ("a\nb", "\"a\\nb\""),
            ("a\"\\", "\"a\\\"\\\\\""),
            ("\u{7f}\u{85}\u{2028}", "\"\\u007F\\u0085\\u2028\""),
            ("\u{e0041}", "\"\\U000E0041\""),
            ("grün", "\"grün\""),
        ] {
            assert_eq!(yaml_scalar(plain), scalar);
        }
    }
}
