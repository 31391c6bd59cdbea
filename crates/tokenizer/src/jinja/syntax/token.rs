//! Tokens: the template is split into text and tags, with the whitespace rules `trim_blocks` and
//! `lstrip_blocks`, as by the lexer of jinja2.

use super::literal::{self, Number};
use crate::jinja::error::{Error, ErrorKind, Result};

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// Text outside tags.
    Text(String),
    /// `{{`.
    PrintBegin,
    /// `}}`.
    PrintEnd,
    /// `{%`.
    BlockBegin,
    /// `%}`.
    BlockEnd,
    Name(String),
    String(String),
    Int(i128),
    Float(f64),
    Operator(&'static str),
}

/// Operators, the longer first.
const OPERATORS: [&str; 28] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
    ">", "<", "=", ".", ":", "|", ",", ";", "!", "&",
];

/// Maximum length of a name in bytes: each use of a name reads it.
const MAX_NAME: usize = 1000;

/// Splits a template into tokens with their lines.
pub fn tokens(source: &str) -> Result<Vec<(Token, usize)>> {
    let mut source = source.replace("\r\n", "\n").replace('\r', "\n");
    if source.ends_with('\n') {
        source.pop();
    }
    let mut lexer = Lexer { rest: &source, line: 1, tokens: Vec::new(), at_line_start: true };
    lexer.template()?;
    Ok(lexer.tokens)
}

fn error<T>(line: usize, cause: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Syntax(cause.into())).at(line))
}

/// Whether Python counts a character as white space.
pub fn is_space(char: char) -> bool {
    char.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&char)
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<(Token, usize)>,
    /// Whether the text before `rest` ended with a line break.
    at_line_start: bool,
}

impl<'a> Lexer<'a> {
    /// Consumes this many bytes.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.line += taken.matches('\n').count();
        if len > 0 {
            self.at_line_start = taken.ends_with('\n');
        }
        self.rest = rest;
        taken
    }

    fn push(&mut self, token: Token) {
        self.tokens.push((token, self.line));
    }

    fn template(&mut self) -> Result<()> {
        loop {
            let starts = ["{{", "{%", "{#"].map(|tag| self.rest.find(tag));
            let Some(start) = starts.into_iter().flatten().min() else { break };
            let begin = &self.rest[start..start + 2];
            let raw_len = raw_tag(&self.rest[start..], "raw");
            self.text(start, begin != "{{");
            match begin {
                "{#" => self.comment()?,
                "{%" if raw_len.is_some() => self.raw(raw_len.unwrap_or_default())?,
                "{%" => {
                    self.push(Token::BlockBegin);
                    self.begin_tag();
                    self.tag("%}")?;
                }
                _ => {
                    self.push(Token::PrintBegin);
                    self.begin_tag();
                    self.tag("}}")?;
                }
            }
        }
        if !self.rest.is_empty() {
            let text = self.rest.to_owned();
            self.push(Token::Text(text));
        }
        Ok(())
    }

    /// Reads text before a tag, and strips white space at its end as the tag says; before tags
    /// that begin a line if they are `strippable`.
    fn text(&mut self, len: usize, strippable: bool) {
        let sign = self.rest[len + 2..].chars().next();
        let (line, at_line_start) = (self.line, self.at_line_start);
        let text = self.take(len);
        let kept = match sign {
            Some('-') => text.trim_end_matches(is_space),
            Some('+') => text,
            _ if strippable => {
                let start = text.rfind('\n').map_or(0, |at| at + 1);
                let begins_line = start > 0 || at_line_start;
                if begins_line && text[start..].chars().all(is_space) {
                    &text[..start]
                } else {
                    text
                }
            }
            _ => text,
        };
        if !kept.is_empty() {
            self.tokens.push((Token::Text(kept.to_owned()), line));
        }
    }

    /// Consumes the beginning of a tag with its sign.
    fn begin_tag(&mut self) {
        let sign = self.rest[2..].starts_with(['-', '+']);
        self.take(2 + usize::from(sign));
    }

    /// Consumes the end of a tag at the beginning of `rest`, and white space that belongs to it.
    fn end_tag(&mut self, end: &str) -> bool {
        let plain = self.rest.strip_prefix(['-', '+']).unwrap_or(self.rest);
        let sign = &self.rest[..self.rest.len() - plain.len()];
        if !plain.starts_with(end) || (sign == "+" && end == "}}") {
            return false;
        }
        self.take(sign.len() + end.len());
        if sign == "-" {
            let space = self.rest.len() - self.rest.trim_start_matches(is_space).len();
            self.take(space);
        } else if sign.is_empty() && end != "}}" && self.rest.starts_with('\n') {
            self.take(1);
        }
        true
    }

    fn comment(&mut self) -> Result<()> {
        let line = self.line;
        let end = self.rest[2..].find("#}").map(|end| end + 2);
        let Some(end) = end else { return error(line, "Missing end of comment tag") };
        let signed = end - usize::from(end > 2 && self.rest[..end].ends_with(['-', '+']));
        self.take(signed);
        self.end_tag("#}");
        Ok(())
    }

    fn raw(&mut self, tag_len: usize) -> Result<()> {
        let line = self.line;
        self.take(tag_len);
        let mut from = 0;
        loop {
            let Some(at) = self.rest[from..].find("{%").map(|at| at + from) else {
                return error(line, "Missing end of raw directive");
            };
            let Some(end) = raw_tag(&self.rest[at..], "endraw") else {
                from = at + 2;
                continue;
            };
            self.text(at, true);
            // The end of the tag may take the line break after it.
            let close = end - 2;
            let signed = close - usize::from(self.rest[..close].ends_with(['-', '+']));
            self.take(signed);
            self.end_tag("%}");
            return Ok(());
        }
    }

    /// Reads the tokens of a tag until its end.
    fn tag(&mut self, end: &'static str) -> Result<()> {
        let line = self.line;
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            let space = self.rest.len() - self.rest.trim_start_matches(is_space).len();
            self.take(space);
            let Some(first) = self.rest.chars().next() else {
                return error(line, format!("unexpected end of template, expected '{end}'"));
            };
            let end_line = self.line;
            if open.is_empty() && self.end_tag(end) {
                let token = if end == "}}" { Token::PrintEnd } else { Token::BlockEnd };
                self.tokens.push((token, end_line));
                return Ok(());
            }
            if first.is_ascii_digit() {
                let after_dot = matches!(self.tokens.last(), Some((Token::Operator("."), _)));
                let (number, len) = literal::number(self.rest, after_dot)
                    .map_err(|cause| Error::new(ErrorKind::Syntax(cause)).at(self.line))?;
                self.push(match number {
                    Number::Int(value) => Token::Int(value),
                    Number::Float(value) => Token::Float(value),
                });
                self.take(len);
            } else if first == '_' || first.is_alphabetic() {
                let len = self.rest.find(|char: char| char != '_' && !char.is_alphanumeric());
                let name = &self.rest[..len.unwrap_or(self.rest.len())];
                if name.len() > MAX_NAME {
                    return error(self.line, format!("a name has more than {MAX_NAME} bytes"));
                }
                self.push(Token::Name(name.to_owned()));
                self.take(name.len());
            } else if first == '\'' || first == '"' {
                let Some(len) = literal::string_len(self.rest, first) else {
                    return error(self.line, format!("unexpected char '{first}'"));
                };
                let text = literal::string(&self.rest[1..len - 1])
                    .map_err(|cause| Error::new(ErrorKind::Syntax(cause)).at(self.line))?;
                self.push(Token::String(text));
                self.take(len);
            } else {
                let found = OPERATORS.into_iter().find(|operator| self.rest.starts_with(operator));
                let Some(operator) = found.filter(|operator| *operator != "!" && *operator != "&")
                else {
                    return error(self.line, format!("unexpected char '{first}'"));
                };
                match operator {
                    "(" => open.push(")"),
                    "[" => open.push("]"),
                    "{" => open.push("}"),
                    ")" | "]" | "}" if open.pop() != Some(operator) => {
                        return error(self.line, format!("unexpected '{operator}'"));
                    }
                    _ => {}
                }
                self.push(Token::Operator(operator));
                self.take(operator.len());
            }
        }
    }
}

/// Returns the length of the tag `{% raw %}` or `{% endraw %}` at the beginning of a text, with
/// the white space that its end strips.
fn raw_tag(text: &str, name: &str) -> Option<usize> {
    let rest = text.strip_prefix("{%")?;
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let rest = rest.trim_start_matches(is_space).strip_prefix(name)?;
    let rest = rest.trim_start_matches(is_space);
    let (sign, rest) = match rest.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, if name == "raw" { rest } else { rest.strip_prefix('+').unwrap_or(rest) }),
    };
    let rest = rest.strip_prefix("%}")?;
    let rest = if sign && name == "raw" { rest.trim_start_matches(is_space) } else { rest };
    Some(text.len() - rest.len())
}
