//! Parser: reads a template as statements.

use super::lexer::{Kind as Token, Token as Spelled, tokens};
use super::tree::{Body, Kind, Node};
use crate::jinja::{Error, ErrorKind};

/// Maximum nesting of expressions and statements; llama.cpp has no limit but its stack.
const MAX_DEPTH: usize = 400;

/// Parses a template.
pub fn parse(source: &str) -> Result<Body, Error> {
    let mut parser = Parser { tokens: tokens(source)?, at: 0, depth: 0 };
    let mut body = Vec::new();
    while parser.at < parser.tokens.len() {
        body.push(parser.any()?);
    }
    Ok(body)
}

pub(super) struct Parser {
    tokens: Vec<Spelled>,
    at: usize,
    depth: usize,
}

impl Parser {
    pub fn peek(&self) -> Option<Token> {
        self.peek_at(0).map(|token| token.kind)
    }

    fn peek_at(&self, distance: usize) -> Option<&Spelled> {
        self.tokens.get(self.at + distance)
    }

    /// Text of the next token; empty at the end.
    pub fn value(&self) -> &str {
        self.peek_at(0).map_or("", |token| &token.value)
    }

    pub fn line(&self) -> usize {
        self.peek_at(0).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    pub fn next(&mut self) -> Result<Spelled, Error> {
        let Some(token) = self.peek_at(0).cloned() else {
            return self.fail("unexpected end of template");
        };
        self.at += 1;
        Ok(token)
    }

    pub fn skip_any(&mut self) {
        self.at += 1;
    }

    pub fn fail<T>(&self, cause: impl Into<String>) -> Result<T, Error> {
        Err(Error::new(ErrorKind::Syntax(cause.into())).at(self.line()))
    }

    pub fn is(&self, operator: &str) -> bool {
        self.peek() == Some(Token::Operator) && self.value() == operator
    }

    pub fn is_name(&self, name: &str) -> bool {
        self.peek() == Some(Token::Name) && self.value() == name
    }

    /// Whether the next two tokens are these names.
    pub fn is_names(&self, first: &str, second: &str) -> bool {
        let other = self.peek_at(1);
        self.is_name(first)
            && other.is_some_and(|other| other.kind == Token::Name && other.value == second)
    }

    pub fn skip(&mut self, operator: &str) -> bool {
        let found = self.is(operator);
        self.at += usize::from(found);
        found
    }

    pub fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, operator: &str) -> Result<(), Error> {
        if self.skip(operator) {
            return Ok(());
        }
        self.fail(format!("expected {operator}, got `{}`", self.value()))
    }

    pub fn expect_kind(&mut self, kind: Token, text: &str) -> Result<(), Error> {
        if self.peek() != Some(kind) {
            return self.fail(format!("expected {text}, got `{}`", self.value()));
        }
        self.at += 1;
        Ok(())
    }

    /// Whether a tag with one of these names follows.
    pub fn is_tag(&self, names: &[&str]) -> bool {
        self.peek() == Some(Token::OpenStatement)
            && self
                .peek_at(1)
                .is_some_and(|name| name.kind == Token::Name && names.contains(&&*name.value))
    }

    /// Reads a part one level deeper.
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let depth = self.depth;
        self.deeper()?;
        let result = read(self);
        self.depth = depth;
        result
    }

    /// Counts a level that a loop adds around what was read.
    pub fn deeper(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(format!("nested more deeply than {MAX_DEPTH} levels"));
        }
        Ok(())
    }

    pub fn depth(&self) -> usize {
        self.depth
    }

    pub fn set_depth(&mut self, depth: usize) {
        self.depth = depth;
    }

    /// Reads text, a comment or a tag.
    pub fn any(&mut self) -> Result<Node, Error> {
        let line = self.line();
        match self.peek() {
            Some(Token::Comment) => {
                self.at += 1;
                Ok(Node { line, kind: Kind::Nothing })
            }
            Some(Token::Text) => Ok(Node { line, kind: Kind::Text(self.next()?.value) }),
            Some(Token::OpenStatement) => self.nested(Self::statement),
            Some(Token::OpenExpression) => {
                self.at += 1;
                let value = self.expression()?;
                self.expect_kind(Token::CloseExpression, "}}")?;
                Ok(value)
            }
            None => self.fail("unexpected end of template"),
            Some(_) => self.fail(format!("unexpected `{}`", self.value())),
        }
    }

    /// Reads statements up to a tag with one of these names.
    pub fn body(&mut self, ends: &[&str]) -> Result<Body, Error> {
        let mut body = Vec::new();
        while !self.is_tag(ends) {
            body.push(self.any()?);
        }
        Ok(body)
    }
}
