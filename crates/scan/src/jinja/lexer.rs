//! Tokens of a template.

/// Token of a template.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// Text outside of tags.
    Data(String),
    /// `{{` or `{%`.
    Open(Tag),
    /// `}}` or `%}`.
    Close(Tag),
    Name(String),
    Text(String),
    Number(f64),
    Operator(&'static str),
    /// Character that no token of jinja2 begins with.
    Unknown,
}

/// Kind of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// `{{ ... }}`.
    Output,
    /// `{% ... %}`.
    Block,
}

/// Operators, longer ones first.
const OPERATORS: [&str; 26] = [
    "**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "<", ">", "=", ".", ",", ":",
    ";", "|", "(", ")", "[", "]", "{", "}",
];

/// A token with its line, from 1.
pub struct Located {
    pub token: Token,
    pub line: u32,
}

/// Splits a template into tokens.
pub fn tokens(template: &str) -> Vec<Located> {
    let mut lexer = Lexer { rest: template, line: 1, tokens: Vec::new() };
    while !lexer.rest.is_empty() {
        lexer.data();
    }
    lexer.tokens
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    tokens: Vec<Located>,
}

impl<'a> Lexer<'a> {
    fn push(&mut self, token: Token) {
        self.tokens.push(Located { token, line: self.line });
    }

    /// Consumes `len` bytes and counts their lines.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count() as u32;
        self.rest = rest;
        taken
    }

    /// Reads text up to the next tag, and the tag.
    fn data(&mut self) {
        let starts = |(at, _): &(usize, &str)| {
            matches!(self.rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'))
        };
        let start = self.rest.match_indices('{').find(starts).map_or(self.rest.len(), |(at, _)| at);
        if start > 0 {
            let line = self.line;
            let text = self.take(start).to_owned();
            self.tokens.push(Located { token: Token::Data(text), line });
        }
        match self.rest.as_bytes() {
            [b'{', b'#', ..] => {
                let end = self.rest.find("#}").map_or(self.rest.len(), |end| end + 2);
                self.take(end);
            }
            [b'{', b'{', ..] => self.tag(Tag::Output, "}}"),
            [b'{', b'%', ..] if !self.raw() => self.tag(Tag::Block, "%}"),
            _ => {}
        }
    }

    /// Reads `{% raw %} ... {% endraw %}`, if the rest begins with it.
    fn raw(&mut self) -> bool {
        let word = |tag: &str| tag.trim_start_matches(['-', '+']).trim_start().to_owned();
        let is_tag = |text: &str, name: &str| {
            let after = word(&text[2..]);
            let rest = after.strip_prefix(name).map(|rest| word(rest.trim_start()));
            rest.is_some_and(|rest| rest.starts_with("%}"))
        };
        // A bounded part of the text decides.
        let head = |text: &'a str| &text[..text.floor_char_boundary(64)];
        if !is_tag(head(self.rest), "raw") {
            return false;
        }
        let body = self.rest.find("%}").map_or(self.rest.len(), |end| end + 2);
        self.take(body);
        let mut ends = self.rest.match_indices("{%").map(|(at, _)| at);
        let end = ends.find(|at| is_tag(head(&self.rest[*at..]), "endraw"));
        let end = end.unwrap_or(self.rest.len());
        let text = self.take(end).to_owned();
        self.push(Token::Data(text));
        let after = self.rest.find("%}").map_or(self.rest.len(), |end| end + 2);
        self.take(after);
        true
    }

    /// Reads the tokens of a tag.
    fn tag(&mut self, tag: Tag, close: &str) {
        self.take(2);
        self.push(Token::Open(tag));
        self.rest = self.rest.strip_prefix(['-', '+']).unwrap_or(self.rest);
        // Closing delimiters within braces end a dictionary.
        let mut braces = 0usize;
        loop {
            let space = self.rest.len() - self.rest.trim_start().len();
            self.take(space);
            let Some(first) = self.rest.chars().next() else { break };
            let inner = self.rest.strip_prefix(['-', '+']).unwrap_or(self.rest);
            if braces == 0 && inner.starts_with(close) {
                self.take(self.rest.len() - inner.len() + close.len());
                break;
            }
            match first {
                '"' | '\'' => {
                    let line = self.line;
                    let text = self.string(first);
                    self.tokens.push(Located { token: Token::Text(text), line });
                }
                _ if first.is_ascii_digit() => {
                    let len = self
                        .rest
                        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.');
                    let text = self.take(len.unwrap_or(self.rest.len())).replace('_', "");
                    self.push(Token::Number(number(&text)));
                }
                _ if is_name_char(first) => {
                    let len = self.rest.find(|c| !is_name_char(c));
                    let name = self.take(len.unwrap_or(self.rest.len())).to_owned();
                    self.push(Token::Name(name));
                }
                _ => {
                    let operator = OPERATORS.iter().find(|one| self.rest.starts_with(**one));
                    match operator {
                        Some(operator) => {
                            self.take(operator.len());
                            match *operator {
                                "{" => braces += 1,
                                "}" => braces = braces.saturating_sub(1),
                                _ => {}
                            }
                            self.push(Token::Operator(operator));
                        }
                        None => {
                            self.take(first.len_utf8());
                            self.push(Token::Unknown);
                        }
                    }
                }
            }
        }
        self.push(Token::Close(tag));
    }

    /// Reads a string literal with its escapes, as Python reads them.
    fn string(&mut self, quote: char) -> String {
        let mut end = 1;
        let bytes = self.rest.as_bytes();
        while end < bytes.len() && bytes[end] != quote as u8 {
            end += 1 + usize::from(bytes[end] == b'\\');
        }
        let end = end.min(bytes.len());
        let end = self.rest.ceil_char_boundary(end);
        let text = unescape(&self.rest[1..end]);
        self.take((end + 1).min(self.rest.len()));
        text
    }
}

/// Returns true for characters of names; Python reads the wide forms of `_` as `_`.
fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '＿' | '﹍' | '﹎' | '﹏' | '︳' | '︴')
}

fn number(text: &str) -> f64 {
    let radix = |digits: &str, radix| i64::from_str_radix(digits, radix).unwrap_or_default() as f64;
    match text.get(..2) {
        Some("0x" | "0X") => radix(&text[2..], 16),
        Some("0o" | "0O") => radix(&text[2..], 8),
        Some("0b" | "0B") => radix(&text[2..], 2),
        _ => text.parse().unwrap_or_default(),
    }
}

/// Replaces the escapes of a Python string literal; an invalid escape stays.
fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else { break };
        let digits = |from: usize, len: usize, radix| {
            let code = u32::from_str_radix(rest.get(from..from + len)?, radix).ok()?;
            Some((char::from_u32(code)?, from + len))
        };
        let octal = rest.bytes().take(3).take_while(|byte| (b'0'..b'8').contains(byte)).count();
        let plain = |c| Some((c, 1));
        let escape = match kind {
            'n' => plain('\n'),
            't' => plain('\t'),
            'r' => plain('\r'),
            'a' => plain('\u{7}'),
            'b' => plain('\u{8}'),
            'f' => plain('\u{c}'),
            'v' => plain('\u{b}'),
            '\\' | '\'' | '"' => plain(kind),
            'x' => digits(1, 2, 16),
            'u' => digits(1, 4, 16),
            'U' => digits(1, 8, 16),
            '0'..='7' => digits(0, octal, 8),
            _ => None,
        };
        match escape {
            Some((c, len)) => {
                result.push(c);
                rest = &rest[len..];
            }
            None => result.push('\\'),
        }
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_python() {
        assert_eq!(unescape(r"\x5f\137\u005fa\n\'\q\"), "___a\n'\\q");
        assert_eq!(unescape("é\\xzz"), "é\\xzz");
    }

    #[test]
    fn tags_strings_and_raw_blocks_are_split() {
        let found: Vec<_> =
            tokens("a{# x #}{{- '}}' ~ {'b': {}} }}{% raw %}{{ c }}{%- endraw -%}\nd")
                .into_iter()
                .map(|one| (one.line, one.token))
                .collect();
        let operator = Token::Operator;
        let text = |text: &str| Token::Text(text.into());
        assert_eq!(
            found.iter().map(|(_, token)| token.clone()).collect::<Vec<_>>(),
            [
                Token::Data("a".into()),
                Token::Open(Tag::Output),
                text("}}"),
                operator("~"),
                operator("{"),
                text("b"),
                operator(":"),
                operator("{"),
                operator("}"),
                operator("}"),
                Token::Close(Tag::Output),
                Token::Data("{{ c }}".into()),
                Token::Data("\nd".into()),
            ]
        );
    }

    #[test]
    fn broken_templates_end() {
        for text in ["{{", "{% raw %}", "{{ 'a", "{{ 'é\\", "{# ", "{", "{{ \u{1F600} }}", "{%"] {
            tokens(text);
        }
    }
}
