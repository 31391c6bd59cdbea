//! Grammar of tags.

use std::sync::Arc;

use super::lexer::Kind as Token;
use super::parser::Parser;
use super::tree::{Body, Kind, Macro, Node};
use crate::jinja::Error;

impl Parser {
    /// Reads a tag with its body.
    pub fn statement(&mut self) -> Result<Node, Error> {
        self.skip_any();
        let line = self.line();
        if self.peek() != Some(Token::Name) {
            return self.fail("unknown statement");
        }
        let name = self.next()?.value;
        let kind = match name.as_str() {
            "set" => self.set()?,
            "if" => {
                let kind = self.branches()?;
                self.end("endif")?;
                kind
            }
            "macro" => {
                let name = self.primary()?;
                let parameters = self.arguments()?;
                let body = self.block("endmacro")?;
                let Some(name) = name.as_name() else {
                    return self.fail("the name of a macro must be an identifier");
                };
                Kind::Macro(Arc::new(Macro { name: name.to_owned(), parameters, body }))
            }
            "for" => self.for_loop()?,
            "break" | "continue" => {
                self.close()?;
                if name == "break" { Kind::Break } else { Kind::Continue }
            }
            "call" => {
                let parameters = if self.is("(") { self.arguments()? } else { Vec::new() };
                let callee = self.primary()?;
                if callee.as_name().is_none() {
                    return self.fail("expected the name of a macro");
                }
                let arguments = self.arguments()?;
                let body = self.block("endcall")?;
                let call = Node { line, kind: Kind::Call(Box::new(callee), arguments) };
                Kind::CallBlock(
                    Box::new(call),
                    Arc::new(Macro { name: "caller".into(), parameters, body }),
                )
            }
            "filter" => {
                let filter = self.filter()?;
                Kind::FilterBlock(Box::new(filter), self.block("endfilter")?)
            }
            "generation" | "endgeneration" => {
                self.skip_any();
                Kind::Nothing
            }
            _ => return self.fail(format!("unknown statement: {name}")),
        };
        Ok(Node { line, kind })
    }

    fn close(&mut self) -> Result<(), Error> {
        self.expect_kind(Token::CloseStatement, "%}")
    }

    /// Reads the end tag of this name.
    fn end(&mut self, name: &str) -> Result<(), Error> {
        self.expect_kind(Token::OpenStatement, "{%")?;
        if !self.skip_name(name) {
            return self.fail(format!("expected {name}"));
        }
        self.close()
    }

    /// Reads the end of a tag, a body and the end tag of this name.
    fn block(&mut self, end: &str) -> Result<Body, Error> {
        self.close()?;
        let body = self.body(&[end])?;
        self.end(end)?;
        Ok(body)
    }

    /// Reads `{% else %}` after its opening, if there is one, and a body up to this tag.
    fn otherwise(&mut self, end: &str) -> Result<Body, Error> {
        if !self.is_tag(&["else"]) {
            return Ok(Vec::new());
        }
        self.skip_any();
        self.skip_any();
        self.close()?;
        self.body(&[end])
    }

    fn set(&mut self) -> Result<Kind, Error> {
        let target = Box::new(self.sequence(Self::expression)?);
        let mut body = Vec::new();
        let value = if self.skip("=") {
            let value = self.sequence(Self::expression)?;
            self.close()?;
            Some(Box::new(value))
        } else {
            body = self.block("endset")?;
            None
        };
        Ok(Kind::Set { target, value, body })
    }

    /// Reads the condition and the branches of `{% if %}` or `{% elif %}`.
    fn branches(&mut self) -> Result<Kind, Error> {
        let test = Box::new(self.expression()?);
        self.close()?;
        let body = self.body(&["elif", "else", "endif"])?;
        let otherwise = if self.is_tag(&["elif"]) {
            let line = self.line();
            self.skip_any();
            self.skip_any();
            vec![Node { line, kind: self.nested(Self::branches)? }]
        } else {
            self.otherwise("endif")?
        };
        Ok(Kind::If { test, body, otherwise })
    }

    fn for_loop(&mut self) -> Result<Kind, Error> {
        let target = Box::new(self.sequence(Self::primary)?);
        if !self.skip_name("in") {
            return self.fail("expected `in`");
        }
        let items = Box::new(self.expression()?);
        self.close()?;
        let body = self.body(&["endfor", "else"])?;
        let otherwise = self.otherwise("endfor")?;
        self.end("endfor")?;
        Ok(Kind::For { target, items, body, otherwise })
    }
}
