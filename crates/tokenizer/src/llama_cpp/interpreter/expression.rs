//! Expressions.

use std::rc::Rc;

use super::Interpreter;
use super::call::MacroCode;
use crate::llama_cpp::builtins::{self, Builtin, Call, Native};
use crate::llama_cpp::result::{Result, failed};
use crate::llama_cpp::scope::Scope;
use crate::llama_cpp::syntax::tree::{Kind, Node};
use crate::llama_cpp::value::{Dict, Value, text_of};

/// Filters of another name.
const ALIASES: [(&str, &str); 4] =
    [("count", "length"), ("d", "default"), ("e", "escape"), ("trim", "strip")];

/// Filters that convert their value to a string, if they have no arguments in parentheses.
const OF_STRINGS: [&str; 7] =
    ["capitalize", "lower", "replace", "strip", "title", "upper", "wordcount"];

impl Interpreter<'_> {
    pub(super) fn evaluate(&self, node: &Node, scope: &Rc<Scope>) -> Result<Value> {
        let truth = |node: &Node| self.execute(node, scope)?.is_true();
        Ok(match &node.kind {
            Kind::Text(text) => {
                self.machine.budget.text(text.len())?;
                Value::text(text.as_bytes())
            }
            Kind::Int(value) => Value::Int(*value),
            Kind::Float(value) => Value::Float(*value),
            Kind::Name(name) => self.name(name, scope),
            Kind::List(items) => Value::list(self.each(items, scope)?),
            Kind::Tuple(items) => Value::tuple(self.each(items, scope)?),
            Kind::Dict(items) => {
                let dict = Dict::new();
                for (key, value) in items {
                    let key = self.execute(key, scope)?;
                    let value = self.execute(value, scope)?;
                    dict.insert(key, value, &self.machine.budget)?;
                }
                Value::Dict(Rc::new(dict))
            }
            Kind::And(left, right) => {
                let left = self.execute(left, scope)?;
                if left.is_true()? { self.execute(right, scope)? } else { left }
            }
            Kind::Or(left, right) => {
                let left = self.execute(left, scope)?;
                if left.is_true()? { left } else { self.execute(right, scope)? }
            }
            Kind::Not(value) => Value::Bool(!truth(value)?),
            Kind::Negative(value) => match self.execute(value, scope)? {
                Value::Int(value) => Value::Int(value.wrapping_neg()),
                Value::Float(value) => Value::Float(-value),
                _ => return failed("Unary - operator requires numeric operand"),
            },
            Kind::Positive(value) => match self.execute(value, scope)? {
                value if value.is_number() => value,
                _ => return failed("Unary + operator requires numeric operand"),
            },
            Kind::Binary(operator, left, right) => {
                let left = self.execute(left, scope)?;
                let right = self.execute(right, scope)?;
                self.binary(operator, &left, &right)?
            }
            Kind::Filter(value, filter) => {
                let value = self.execute(value, scope)?;
                self.filter(filter, value, scope)?
            }
            Kind::Test(value, negated, test) => {
                let value = self.test(value, test, scope)?;
                if *negated { Value::Bool(!value.is_true()?) } else { value }
            }
            Kind::Select(value, test) => match truth(test)? {
                true => self.execute(value, scope)?,
                false => Value::undefined(""),
            },
            Kind::Conditional(test, value, otherwise) => {
                let chosen = if truth(test)? { value } else { otherwise };
                self.execute(chosen, scope)?
            }
            Kind::Member(object, property) => self.member(object, property, scope)?,
            Kind::Item(object, property) => self.item(object, property, scope)?,
            Kind::Slice(_) => return failed("a slice stands outside of brackets"),
            Kind::Blank => Value::undefined(""),
            Kind::Call(callee, arguments) => {
                let arguments = self.each(arguments, scope)?;
                let callee = self.execute(callee, scope)?;
                self.call(&callee, arguments, scope)?
            }
            Kind::Keyword(name, value) => {
                let Some(name) = name.as_name() else {
                    return failed("the name of an argument must be an identifier");
                };
                let value = self.execute(value, scope)?;
                Value::Keyword(Rc::new((name.to_owned(), value)))
            }
            Kind::Spread => return failed("`*` in arguments is not implemented"),
            Kind::If { test, body, otherwise } => {
                let body = if truth(test)? { body } else { otherwise };
                Value::Text(self.run(body, scope)?.into())
            }
            Kind::For { target, items, body, otherwise } => {
                self.for_loop(target, items, body, otherwise, scope)?
            }
            Kind::Set { target, value, body } => {
                let value = match value {
                    Some(value) => self.execute(value, scope)?,
                    None => Value::Text(self.run(body, scope)?.into()),
                };
                self.assign(target, value, scope)?;
                Value::undefined("")
            }
            Kind::Macro(node) => {
                let code = MacroCode::of(node);
                scope.set(&node.name, Value::function(&node.name, code, None));
                Value::undefined("")
            }
            Kind::CallBlock(call, caller) => self.call_block(call, caller, scope)?,
            Kind::FilterBlock(filter, body) => {
                let text = Value::Text(self.run(body, scope)?.into());
                self.filter(filter, text, scope)?
            }
            Kind::Break => return Err(crate::llama_cpp::result::Stop::Break),
            Kind::Continue => return Err(crate::llama_cpp::result::Stop::Continue),
            Kind::Nothing => Value::undefined(""),
        })
    }

    /// Evaluates expressions in order.
    pub(super) fn each(&self, nodes: &[Node], scope: &Rc<Scope>) -> Result<Vec<Value>> {
        self.machine.budget.list(nodes.len())?;
        nodes.iter().map(|node| self.execute(node, scope)).collect()
    }

    fn name(&self, name: &str, scope: &Rc<Scope>) -> Value {
        match scope.get(name).filter(|value| !value.is_undefined()) {
            Some(value) => {
                self.machine.mark(&value, None);
                value
            }
            None => match builtins::global(name) {
                Some(function) => Value::function(name, Native(function), None),
                None => Value::undefined(name),
            },
        }
    }

    /// Returns a filter or method of a value, and records that the template asks for it.
    pub(super) fn method(&self, value: &Value, name: &str) -> Result<Option<Builtin>> {
        self.machine.mark(value, Some(name));
        builtins::method(value, name)
    }

    fn filter(&self, filter: &Node, value: Value, scope: &Rc<Scope>) -> Result<Value> {
        let (name, arguments) = match &filter.kind {
            Kind::Name(name) => (name, None),
            Kind::Call(callee, arguments) => match &callee.kind {
                Kind::Name(name) => (name, Some(arguments)),
                _ => return failed("the name of a filter must be an identifier"),
            },
            _ => return failed("the name of a filter must be an identifier"),
        };
        let alias = ALIASES.iter().find(|(alias, _)| alias == name);
        let name = alias.map_or(name.as_str(), |(_, name)| name);
        let converts = arguments.is_none() && OF_STRINGS.contains(&name) && !value.is_undefined();
        let value = match value {
            value if !converts || matches!(value, Value::Text(_)) => value,
            other => {
                let text = text_of(&other, &self.machine.budget)?;
                Value::text(text.bytes.clone())
            }
        };
        let mut all = vec![value];
        if let Some(arguments) = arguments {
            all.extend(self.each(arguments, scope)?);
        }
        match self.method(&all[0], name)? {
            Some(function) => function(&Call { machine: self.machine, name, arguments: all }),
            None => failed(format!(
                "Unknown (built-in) filter '{name}' for type {}",
                all[0].type_name()
            )),
        }
    }

    fn test(&self, value: &Node, test: &Node, scope: &Rc<Scope>) -> Result<Value> {
        let value = self.execute(value, scope)?;
        let mut arguments = vec![value.clone()];
        let name = match &test.kind {
            Kind::Name(name) => name,
            Kind::Call(callee, more) => {
                let Some(name) = callee.as_name() else {
                    return failed("the name of a test must be an identifier");
                };
                arguments.extend(self.each(more, scope)?);
                name
            }
            _ => return failed("the name of a test must be an identifier"),
        };
        let Some(function) = builtins::test(name) else {
            return failed(format!("Unknown test '{name}'"));
        };
        self.machine.mark(&value, Some(&format!("test_is_{name}")));
        function(&Call { machine: self.machine, name, arguments })
    }
}
