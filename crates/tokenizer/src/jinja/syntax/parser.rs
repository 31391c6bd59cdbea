//! Parser: the grammar of jinja2's parser, with the extensions of transformers.

use std::sync::Arc;

use super::token::{Token, tokens};
use super::tree::{Body, Tree, Uses};
use crate::jinja::error::{Error, ErrorKind, Result};

/// Maximum nesting of expressions and statements; Python's recursion limit allows fewer.
const MAX_DEPTH: usize = 400;

/// Parses a template.
pub fn parse(source: &str) -> Result<Tree> {
    let tokens = tokens(source)?;
    let mut parser = Parser { tokens, at: 0, depth: 0, blocks: Vec::new(), uses: Uses::default() };
    let body = parser.body(&[])?;
    Ok(Tree { body, blocks: parser.blocks })
}

pub(super) struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    pub depth: usize,
    pub blocks: Vec<(String, Arc<Body>)>,
    /// Special variables that the innermost macro uses.
    pub uses: Uses,
}

impl Parser {
    pub fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    pub fn peek_second(&self) -> Option<&Token> {
        self.tokens.get(self.at + 1).map(|(token, _)| token)
    }

    /// Returns the line of the next token, or of the last one.
    pub fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(_, line)| *line)
    }

    pub fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    pub fn fail<T>(&self, cause: impl Into<String>) -> Result<T> {
        Err(Error::new(ErrorKind::Syntax(cause.into())).at(self.line()))
    }

    /// Fails at the next token.
    pub fn unexpected<T>(&self, expected: &str) -> Result<T> {
        let found = match self.peek() {
            None => "end of template".to_owned(),
            Some(token) => describe(token),
        };
        self.fail(format!("unexpected {found}, expected {expected}"))
    }

    pub fn is_operator(&self, operator: &str) -> bool {
        matches!(self.peek(), Some(Token::Operator(found)) if *found == operator)
    }

    pub fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if found == name)
    }

    /// Consumes this operator if it is next.
    pub fn skip(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        self.at += usize::from(found);
        found
    }

    /// Consumes this name if it is next.
    pub fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, operator: &str) -> Result<()> {
        if self.skip(operator) { Ok(()) } else { self.unexpected(&format!("'{operator}'")) }
    }

    pub fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.peek() == Some(token) {
            self.at += 1;
            return Ok(());
        }
        self.unexpected(&describe(token))
    }

    pub fn name(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.unexpected("a name"),
        }
    }

    /// Counts one more level of nesting.
    pub fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(format!("more than {MAX_DEPTH} levels of nesting"));
        }
        Ok(())
    }

    /// Runs a part of the grammar one level deeper.
    pub fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let depth = self.depth;
        self.deeper()?;
        let result = part(self)?;
        self.depth = depth;
        Ok(result)
    }
}

fn describe(token: &Token) -> String {
    match token {
        Token::Text(_) => "text".into(),
        Token::PrintBegin => "'{{'".into(),
        Token::PrintEnd => "'}}'".into(),
        Token::BlockBegin => "'{%'".into(),
        Token::BlockEnd => "'%}'".into(),
        Token::Name(name) => format!("'{name}'"),
        Token::String(_) => "a string".into(),
        Token::Int(value) => format!("'{value}'"),
        Token::Float(value) => format!("'{value}'"),
        Token::Operator(operator) => format!("'{operator}'"),
    }
}
