//! Tokens: text and tags with `trim_blocks` and `lstrip_blocks`, as `common/jinja/lexer.cpp` splits them.

use crate::jinja::{Error, ErrorKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Comment,
    Number,
    String,
    Name,
    OpenStatement,
    CloseStatement,
    OpenExpression,
    CloseExpression,
    /// A sign before a value.
    Sign,
    Operator,
}

#[derive(Clone, Debug)]
pub struct Token {
    pub kind: Kind,
    /// Text of a text, number, string or name; an operator as it is written.
    pub value: String,
    pub line: usize,
}

/// Tokens with fixed texts, in the order in which llama.cpp tries them.
const FIXED: &[(&str, Kind)] = &[
    ("{%-", Kind::OpenStatement),
    ("-%}", Kind::CloseStatement),
    ("{{-", Kind::OpenExpression),
    ("-}}", Kind::CloseExpression),
    ("{%", Kind::OpenStatement),
    ("%}", Kind::CloseStatement),
    ("{{", Kind::OpenExpression),
    ("}}", Kind::CloseExpression),
    ("(", Kind::Operator),
    (")", Kind::Operator),
    ("{", Kind::Operator),
    ("}", Kind::Operator),
    ("[", Kind::Operator),
    ("]", Kind::Operator),
    (",", Kind::Operator),
    (".", Kind::Operator),
    (":", Kind::Operator),
    ("|", Kind::Operator),
    ("<=", Kind::Operator),
    (">=", Kind::Operator),
    ("==", Kind::Operator),
    ("!=", Kind::Operator),
    ("<", Kind::Operator),
    (">", Kind::Operator),
    ("+", Kind::Operator),
    ("-", Kind::Operator),
    ("~", Kind::Operator),
    ("*", Kind::Operator),
    ("/", Kind::Operator),
    ("%", Kind::Operator),
    ("=", Kind::Operator),
];

/// White space that signs at tags strip.
const STRIPPED: [char; 4] = [' ', '\t', '\r', '\n'];

/// White space of C.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

/// Splits a template into tokens.
pub fn tokens(source: &str) -> Result<Vec<Token>, Error> {
    let mut text = source.replace("\r\n", "\n").replace('\r', "\n");
    if source.ends_with('\n') {
        text.pop();
    }
    let mut lexer =
        Lexer { source: &text, at: 0, line: 1, counted: 0, braces: 0, tokens: Vec::new() };
    while lexer.at < lexer.source.len() {
        if !lexer.next()? {
            break;
        }
    }
    Ok(lexer.tokens)
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    /// Line of the byte `counted`.
    line: usize,
    counted: usize,
    /// Depth of braces, so that the end of a dictionary does not end an expression.
    braces: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    /// Byte at this distance; 0 after the end.
    fn byte(&self, distance: usize) -> u8 {
        self.source.as_bytes().get(self.at + distance).copied().unwrap_or(0)
    }

    fn fail<T>(&mut self, cause: impl Into<String>) -> Result<T, Error> {
        let line = self.line_of(self.at);
        Err(Error::new(ErrorKind::Syntax(cause.into())).at(line))
    }

    fn line_of(&mut self, at: usize) -> usize {
        let at = at.min(self.source.len());
        let passed = &self.source.as_bytes()[self.counted.min(at)..at];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.counted = self.counted.max(at);
        self.line
    }

    fn push(&mut self, kind: Kind, value: impl Into<String>, start: usize) {
        let line = self.line_of(start);
        self.tokens.push(Token { kind, value: value.into(), line });
    }

    fn last(&self) -> Option<Kind> {
        self.tokens.last().map(|token| token.kind)
    }

    /// Reads one token; false at the end of the template.
    fn next(&mut self) -> Result<bool, Error> {
        let last = self.last();
        let is_outside = matches!(
            last,
            None | Some(Kind::CloseStatement | Kind::CloseExpression | Kind::Comment)
        );
        if is_outside && self.text() {
            return Ok(true);
        }
        if self.byte(0) == b'{' && self.byte(1) == b'#' {
            return self.comment().map(|()| true);
        }
        if self.byte(0) == b'-' && matches!(last, Some(Kind::OpenExpression | Kind::OpenStatement))
        {
            self.at += 1;
        }
        while is_space(self.byte(0)) {
            self.at += 1;
        }
        if self.at >= self.source.len() {
            return Ok(false);
        }
        self.token().map(|()| true)
    }

    /// Reads the text before a tag; false if there is none.
    fn text(&mut self) -> bool {
        let bytes = self.source.as_bytes();
        let start = self.at;
        let before = |distance: usize| if start > 3 { bytes[start - distance] } else { 0 };
        let closes = before(1) == b'}';
        let strips_start = closes && before(3) == b'-' && b"%}#".contains(&before(2));
        let takes_line_break = closes && b"#%-".contains(&before(2));
        let tag = |at: usize| {
            bytes[at] == b'{' && bytes.get(at + 1).is_some_and(|next| b"%{#".contains(next))
        };
        let mut end = (start..bytes.len()).find(|at| tag(*at)).unwrap_or(bytes.len());
        self.at = end;
        if self.byte(0) == b'{' && b"%#-".contains(&self.byte(1)) {
            let mut current = end;
            while current > start {
                // The first character of a template goes too, whatever it is.
                if current == 1 {
                    end = 0;
                    break;
                }
                match bytes[current - 1] {
                    b'\n' => {
                        end = current;
                        break;
                    }
                    byte if is_space(byte) => current -= 1,
                    _ => break,
                }
            }
        }
        let mut text = &self.source[start..end.max(start)];
        if takes_line_break {
            text = text.strip_prefix('\n').unwrap_or(text);
        }
        if strips_start {
            text = text.trim_start_matches(STRIPPED);
        }
        if self.byte(0) == b'{' && b"{%#".contains(&self.byte(1)) && self.byte(2) == b'-' {
            text = text.trim_end_matches(STRIPPED);
        }
        let text = text.to_owned();
        let found = !text.is_empty();
        if found {
            self.push(Kind::Text, text, start);
        }
        found
    }

    fn comment(&mut self) -> Result<(), Error> {
        let start = self.at;
        let Some(len) = self.source[start + 2..].find("#}") else {
            return self.fail("missing end of comment tag");
        };
        self.at += 2 + len + 2;
        self.push(Kind::Comment, "", start);
        Ok(())
    }

    fn token(&mut self) -> Result<(), Error> {
        let first = self.byte(0);
        let start = self.at;
        let closes = first == b'-' && b"%}".contains(&self.byte(1));
        if !closes && (first == b'-' || first == b'+') && self.begins_value()? {
            self.at += 1;
            self.number();
            let kind = if self.at > start + 1 { Kind::Number } else { Kind::Sign };
            let value = self.source[start..self.at].to_owned();
            self.push(kind, value, start);
            return Ok(());
        }
        let rest = &self.source[start..];
        let fixed = FIXED
            .iter()
            .find(|(text, _)| rest.starts_with(text) && !(*text == "}}" && self.braces > 0));
        if let Some((text, kind)) = fixed {
            match *text {
                "{{" | "{{-" => self.braces = 0,
                "{" => self.braces += 1,
                "}" => self.braces = self.braces.wrapping_sub(1),
                _ => {}
            }
            self.push(*kind, *text, start);
            self.at += text.len();
            return Ok(());
        }
        match first {
            b'\'' | b'"' => self.string(first),
            b'0'..=b'9' => {
                self.number();
                let value = self.source[start..self.at].to_owned();
                self.push(Kind::Number, value, start);
                Ok(())
            }
            _ if first == b'_' || first.is_ascii_alphanumeric() => {
                while self.byte(0) == b'_' || self.byte(0).is_ascii_alphanumeric() {
                    self.at += 1;
                }
                let value = self.source[start..self.at].to_owned();
                self.push(Kind::Name, value, start);
                Ok(())
            }
            _ => {
                let char = rest.chars().next().unwrap_or(' ');
                self.fail(format!("unexpected character: {char}"))
            }
        }
    }

    /// Whether a sign belongs to a value. After a name it is an operator, even after `else` and `not`.
    fn begins_value(&mut self) -> Result<bool, Error> {
        let Some(token) = self.tokens.last() else { return self.fail("unexpected character") };
        let ends_value = match token.kind {
            Kind::Name | Kind::Number | Kind::String => true,
            Kind::Operator => [")", "]"].contains(&token.value.as_str()),
            _ => false,
        };
        if token.kind == Kind::Text {
            return self.fail("unexpected character");
        }
        Ok(!ends_value)
    }

    /// Passes digits, and a point with digits.
    fn number(&mut self) {
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            self.at += 1;
            while self.byte(0).is_ascii_digit() {
                self.at += 1;
            }
        }
    }

    fn string(&mut self, quote: u8) -> Result<(), Error> {
        let start = self.at;
        let mut value = String::new();
        let mut chars = self.source[start + 1..].char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => match chars.next().map(|(_, escape)| (escape, unescaped(escape))) {
                    Some((_, Some(char))) => value.push(char),
                    Some((escape, None)) => {
                        self.at = start + 1 + at;
                        return self.fail(format!("unknown escape character \\{escape}"));
                    }
                    None => break,
                },
                _ if char == char::from(quote) => {
                    self.at = start + 1 + at + 1;
                    self.push(Kind::String, value, start);
                    return Ok(());
                }
                _ => value.push(char),
            }
        }
        self.fail("unexpected end of input in a string")
    }
}

fn unescaped(escape: char) -> Option<char> {
    Some(match escape {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '\'' | '"' => escape,
        _ => return None,
    })
}
