//! Evaluation of expressions.

use std::rc::Rc;

use super::Interpreter;
use super::object::{LoopMethod, LoopObject, NEEDS_ALL, NEEDS_NEXT, TemplateObject};
use super::scope::Scope;
use crate::jinja::arguments::Arguments;
use crate::jinja::error::{Result, failed};
use crate::jinja::filters;
use crate::jinja::globals::global;
use crate::jinja::syntax::tree::{CallArguments, Constant, Expression, Unary};
use crate::jinja::value::{Dict, Value};
use crate::jinja::{access, operators, tests};

/// Whether an expression is a literal, with a sign or without.
fn is_constant(expression: &Expression) -> bool {
    match expression {
        Expression::Unary(_, value) => is_constant(value),
        other => matches!(other, Expression::Constant(_)),
    }
}

impl Interpreter<'_> {
    pub fn evaluate(&mut self, expression: &Expression, scope: &Rc<Scope>) -> Result<Value> {
        self.nested(|this| this.compute(expression, scope))
    }

    fn compute(&mut self, expression: &Expression, scope: &Rc<Scope>) -> Result<Value> {
        self.budget().spend(1)?;
        Ok(match expression {
            Expression::Constant(constant) => match constant {
                Constant::None => Value::None,
                Constant::Bool(value) => Value::Bool(*value),
                Constant::Int(value) => Value::Int(*value),
                Constant::Float(value) => Value::Float(*value),
                Constant::Text(text) => {
                    self.budget().text(text.len())?;
                    Value::text(text.as_str())
                }
            },
            Expression::Name(name) => self.variable(name, scope)?,
            Expression::List(items) => Value::list(self.evaluate_all(items, scope)?),
            Expression::Tuple(items) => Value::tuple(self.evaluate_all(items, scope)?),
            Expression::Dict(items) => {
                let mut dict = Dict::default();
                for (key, value) in items {
                    let key = self.evaluate(key, scope)?;
                    let value = self.evaluate(value, scope)?;
                    dict.insert(key, value, self.budget())?;
                }
                Value::Dict(Rc::new(dict))
            }
            Expression::Attribute(value, name) => {
                let value = self.evaluate(value, scope)?;
                match self.loop_attribute(&value, name)? {
                    Some(method) => method,
                    None => access::attribute(&value, name, self.budget())?,
                }
            }
            Expression::Item(object, index) => {
                let value = self.evaluate(object, scope)?;
                if let Expression::Slice(parts) = &**index {
                    return match self.slice(&value, parts, scope) {
                        // jinja2 computes constants when it compiles, by other rules.
                        Err(_) if is_constant(object) => {
                            Ok(Value::undefined("the value has no such element"))
                        }
                        slice => slice,
                    };
                }
                let index = self.evaluate(index, scope)?;
                match index.as_str().map(|name| self.loop_attribute(&value, name)).transpose()? {
                    Some(Some(method)) => method,
                    _ => access::item(&value, &index, self.budget())?,
                }
            }
            // Slices are indices only.
            Expression::Slice(_) => Value::undefined("a slice is not a value"),
            Expression::Call(callee, arguments) => {
                let callee = self.evaluate(callee, scope)?;
                let arguments = self.arguments(arguments, scope)?;
                self.call(&callee, arguments)?
            }
            Expression::Filter(value, filter) => {
                let value = self.evaluate(value, scope)?;
                let arguments = self.arguments(&filter.arguments, scope)?;
                filters::call(&filter.name, &value, arguments, &self.machine)?
            }
            Expression::Test { value, name, arguments } => {
                let value = self.evaluate(value, scope)?;
                let arguments = self.arguments(arguments, scope)?;
                Value::Bool(match (name.as_str(), value.as_str()) {
                    ("filter", Some(text)) => filters::exists(text),
                    _ => tests::call(name, &value, arguments, self.budget())?,
                })
            }
            Expression::Unary(operation, value) => {
                let value = self.evaluate(value, scope)?;
                match operation {
                    Unary::Not => Value::Bool(!value.is_true()),
                    Unary::Negative => operators::signed(&value, true)?,
                    Unary::Positive => operators::signed(&value, false)?,
                }
            }
            Expression::Binary(operation, left, right) => {
                let left = self.evaluate(left, scope)?;
                let right = self.evaluate(right, scope)?;
                operators::binary(*operation, &left, &right, self.budget())?
            }
            Expression::Concat(parts) => {
                let parts = self.evaluate_all(parts, scope)?;
                operators::concat(&parts, self.machine.autoescape.get(), self.budget())?
            }
            Expression::Compare(first, others) => {
                let mut left = self.evaluate(first, scope)?;
                for (comparison, right) in others {
                    let right = self.evaluate(right, scope)?;
                    if !operators::compare(*comparison, &left, &right, self.budget())? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Value::Bool(true)
            }
            Expression::And(left, right) => {
                let left = self.evaluate(left, scope)?;
                if left.is_true() { self.evaluate(right, scope)? } else { left }
            }
            Expression::Or(left, right) => {
                let left = self.evaluate(left, scope)?;
                if left.is_true() { left } else { self.evaluate(right, scope)? }
            }
            Expression::Conditional { value, condition, otherwise } => {
                if self.evaluate(condition, scope)?.is_true() {
                    self.evaluate(value, scope)?
                } else if let Some(otherwise) = otherwise {
                    self.evaluate(otherwise, scope)?
                } else {
                    Value::undefined(
                        "the inline if-expression evaluated to false and no else section was \
                         defined",
                    )
                }
            }
        })
    }

    fn evaluate_all(
        &mut self,
        expressions: &[Expression],
        scope: &Rc<Scope>,
    ) -> Result<Vec<Value>> {
        expressions.iter().map(|expression| self.evaluate(expression, scope)).collect()
    }

    fn variable(&self, name: &str, scope: &Rc<Scope>) -> Result<Value> {
        if let Some(value) = scope.get(name).or_else(|| global(name)) {
            return Ok(value);
        }
        if name == "self" {
            self.budget().list(self.tree.blocks.len())?;
            let blocks = self.tree.blocks.iter().map(|(name, _)| name.clone()).collect();
            return Ok(Value::object(TemplateObject { blocks }));
        }
        Ok(Value::undefined(format!("'{name}' is undefined")))
    }

    fn slice(
        &mut self,
        value: &Value,
        parts: &[Option<Box<Expression>>; 3],
        scope: &Rc<Scope>,
    ) -> Result<Value> {
        let mut bounds = [None; 3];
        for (bound, part) in bounds.iter_mut().zip(parts) {
            let Some(part) = part else { continue };
            match self.evaluate(part, scope)? {
                Value::None => {}
                part => match part.as_int() {
                    Some(part) => *bound = Some(part),
                    None => return failed("slice indices must be integers or None"),
                },
            }
        }
        access::slice(value, bounds, self.budget())
    }

    /// Prepares an attribute of `loop`, or returns its method of this name.
    fn loop_attribute(&mut self, value: &Value, name: &str) -> Result<Option<Value>> {
        let Some(object) = value.downcast::<LoopObject>() else { return Ok(None) };
        if object.node.condition.is_some() {
            if NEEDS_NEXT.contains(&name) {
                self.find_next(object)?;
            } else if NEEDS_ALL.contains(&name) {
                self.find_all(object)?;
            }
        }
        let is_method = ["changed", "cycle"].contains(&name);
        Ok(is_method.then(|| {
            Value::object(LoopMethod { receiver: value.clone(), is_cycle: name == "cycle" })
        }))
    }

    /// Evaluates the arguments of a call.
    pub fn arguments(&mut self, arguments: &CallArguments, scope: &Rc<Scope>) -> Result<Arguments> {
        let mut positional = self.evaluate_all(&arguments.positional, scope)?;
        let mut named = Vec::with_capacity(arguments.named.len());
        for (name, value) in &arguments.named {
            named.push((name.clone(), self.evaluate(value, scope)?));
        }
        if let Some(list) = &arguments.list {
            positional.extend(self.evaluate(list, scope)?.items(self.budget())?);
        }
        if let Some(dict) = &arguments.dict
            && let dict = self.evaluate(dict, scope)?
        {
            dict.defined()?;
            dict.pay(self.budget())?;
            let Value::Dict(dict) = dict else {
                return failed("argument after ** must be a mapping");
            };
            for (name, value) in dict.iter() {
                named.push((name.expect_str()?.to_owned(), value.clone()));
            }
        }
        Ok(Arguments { positional, named })
    }
}
