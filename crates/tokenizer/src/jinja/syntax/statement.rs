//! Grammar of statements.

use std::mem;
use std::sync::Arc;

use super::expression::TupleRules;
use super::parser::Parser;
use super::token::Token;
use super::tree::{
    Body, Expression, Loop, Macro, Parameter, Statement, StatementKind, Target, Uses,
};
use crate::jinja::error::Result;

/// Names of tags that load other templates.
const LOADERS: [&str; 4] = ["extends", "include", "import", "from"];

impl Parser {
    /// Reads statements up to a tag with one of these names, whose name is next then.
    pub fn body(&mut self, ends: &[&str]) -> Result<Body> {
        let mut body = Body::new();
        loop {
            let line = self.line();
            let kind = match self.next() {
                None if ends.is_empty() => return Ok(body),
                None => return self.unexpected(&format!("'{{% {} %}}'", ends.join(" or "))),
                Some(Token::Text(text)) => StatementKind::Text(text),
                Some(Token::PrintBegin) => {
                    let rules = TupleRules { conditional: true, ..TupleRules::default() };
                    let value = self.tuple(rules)?;
                    self.expect_token(&Token::PrintEnd)?;
                    StatementKind::Print(value)
                }
                Some(Token::BlockBegin) => {
                    if ends.iter().any(|end| self.is_name(end)) {
                        return Ok(body);
                    }
                    self.nested(|parser| parser.statement(line, &mut body))?;
                    self.expect_token(&Token::BlockEnd)?;
                    continue;
                }
                // The lexer puts every other token between a beginning and an end.
                Some(_) => return self.unexpected("text"),
            };
            body.push(Statement { line, kind });
        }
    }

    /// Reads a body and the name of the tag that ends it.
    fn body_until(&mut self, ends: &[&str]) -> Result<(Body, String)> {
        self.expect_token(&Token::BlockEnd)?;
        let body = self.body(ends)?;
        Ok((body, self.name()?))
    }

    fn statement(&mut self, line: usize, body: &mut Body) -> Result<()> {
        let name = self.name()?;
        let kind = match name.as_str() {
            "if" => self.condition()?,
            "for" => self.for_loop()?,
            "continue" => StatementKind::Continue,
            "break" => StatementKind::Break,
            "set" => self.set()?,
            "with" => self.with()?,
            "macro" => self.macro_definition()?,
            "call" => self.call_block()?,
            "filter" => {
                let filters = self.filter_calls(false)?;
                let (body, _) = self.body_until(&["endfilter"])?;
                StatementKind::Filter { filters, body }
            }
            "autoescape" => {
                let enabled = self.expression()?;
                let (body, _) = self.body_until(&["endautoescape"])?;
                StatementKind::AutoEscape { enabled, body }
            }
            "generation" => StatementKind::Generation(self.body_until(&["endgeneration"])?.0),
            "block" => self.block()?,
            "print" => {
                while self.peek() != Some(&Token::BlockEnd) {
                    let value = self.expression()?;
                    body.push(Statement { line, kind: StatementKind::Print(value) });
                    if !self.skip(",") {
                        break;
                    }
                }
                return Ok(());
            }
            loader if LOADERS.contains(&loader) => {
                while !matches!(self.peek(), None | Some(Token::BlockEnd)) {
                    self.next();
                }
                StatementKind::Load
            }
            other => return self.fail(format!("unknown tag '{other}'")),
        };
        body.push(Statement { line, kind });
        Ok(())
    }

    fn condition(&mut self) -> Result<StatementKind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.tuple(TupleRules::default())?;
            let (body, end) = self.body_until(&["elif", "else", "endif"])?;
            branches.push((condition, body));
            match end.as_str() {
                "elif" => {}
                "else" => {
                    let (otherwise, _) = self.body_until(&["endif"])?;
                    return Ok(StatementKind::If { branches, otherwise });
                }
                _ => return Ok(StatementKind::If { branches, otherwise: Body::new() }),
            }
        }
    }

    fn for_loop(&mut self) -> Result<StatementKind> {
        let target = self.target(false, Some("in"))?;
        if !self.skip_name("in") {
            return self.unexpected("'in'");
        }
        let items = self.tuple(TupleRules { end: Some("recursive"), ..TupleRules::default() })?;
        let condition = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let is_recursive = self.skip_name("recursive");
        let (body, end) = self.body_until(&["endfor", "else"])?;
        let otherwise = if end == "else" { self.body_until(&["endfor"])?.0 } else { Body::new() };
        let node = Loop { target, items, condition, is_recursive, body, otherwise };
        Ok(StatementKind::For(Arc::new(node)))
    }

    fn set(&mut self) -> Result<StatementKind> {
        let target = self.target(true, None)?;
        if self.skip("=") {
            let rules = TupleRules { conditional: true, ..TupleRules::default() };
            return Ok(StatementKind::Set { target, value: self.tuple(rules)? });
        }
        let filters = self.filter_calls(true)?;
        let (body, _) = self.body_until(&["endset"])?;
        Ok(StatementKind::SetBlock { target, filters, body })
    }

    fn with(&mut self) -> Result<StatementKind> {
        let mut assignments: Vec<(Target, Expression)> = Vec::new();
        while self.peek() != Some(&Token::BlockEnd) {
            if !assignments.is_empty() {
                self.expect(",")?;
            }
            let target = self.target(false, None)?;
            self.expect("=")?;
            assignments.push((target, self.expression()?));
        }
        let (body, _) = self.body_until(&["endwith"])?;
        Ok(StatementKind::With { assignments, body })
    }

    fn parameters(&mut self) -> Result<Vec<Parameter>> {
        self.expect("(")?;
        let mut parameters: Vec<Parameter> = Vec::new();
        while !self.is_operator(")") {
            if !parameters.is_empty() {
                self.expect(",")?;
            }
            let name = self.name()?;
            let default = if self.skip("=") { Some(self.expression()?) } else { None };
            if default.is_none() && parameters.last().is_some_and(|last| last.default.is_some()) {
                return self.fail("non-default argument follows default argument");
            }
            parameters.push(Parameter { name, default });
        }
        self.expect(")")?;
        Ok(parameters)
    }

    /// Reads the body of a macro, and which special variables it uses.
    fn macro_body(
        &mut self,
        name: String,
        parameters: Vec<Parameter>,
        end: &str,
    ) -> Result<Arc<Macro>> {
        let outer = mem::take(&mut self.uses);
        let (body, _) = self.body_until(&[end])?;
        let uses = self.uses;
        self.uses = Uses {
            varargs: outer.varargs || uses.varargs,
            kwargs: outer.kwargs || uses.kwargs,
            caller: outer.caller || uses.caller,
        };
        Ok(Arc::new(Macro { name, parameters, body, uses }))
    }

    fn macro_definition(&mut self) -> Result<StatementKind> {
        let name = self.name()?;
        let parameters = self.parameters()?;
        Ok(StatementKind::Macro(self.macro_body(name, parameters, "endmacro")?))
    }

    fn call_block(&mut self) -> Result<StatementKind> {
        let parameters = if self.is_operator("(") { self.parameters()? } else { Vec::new() };
        let call = self.expression()?;
        if !matches!(call, Expression::Call(..)) {
            return self.fail("expected call");
        }
        let caller = self.macro_body("caller".into(), parameters, "endcall")?;
        Ok(StatementKind::Call { call, caller })
    }

    fn block(&mut self) -> Result<StatementKind> {
        let name = self.name()?;
        while self.skip_name("scoped") || self.skip_name("required") {}
        let (body, _) = self.body_until(&["endblock"])?;
        self.skip_name(&name);
        if self.blocks.iter().any(|(other, _)| *other == name) {
            return self.fail(format!("block '{name}' defined twice"));
        }
        self.blocks.push((name.clone(), Arc::new(body)));
        Ok(StatementKind::Block(name))
    }
}
