//! Interpreter: runs statements and evaluates expressions (`common/jinja/runtime.cpp`).

mod call;
mod expression;
mod member;
mod operator;
mod statement;

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::machine::Machine;
use super::result::{Result, Stop, failed};
use super::scope::Scope;
use super::syntax::tree::{Body, Node};
use super::value::{Text, Value, text_of};
use crate::jinja::{Error, ErrorKind};

/// Maximum depth of statements and expressions in all calls.
const MAX_DEPTH: usize = 5000;

/// Maximum depth of calls of macros.
const MAX_CALLS: usize = 250;

/// Renders a template with the variables of a scope.
pub fn render(
    body: &Body,
    scope: &Rc<Scope>,
    machine: &Machine,
    text_len: usize,
) -> std::result::Result<Text, Error> {
    let interpreter = Interpreter { machine, text_len };
    let result = interpreter.run(body, scope).map_err(Stop::into_error);
    machine.changed.take().iter().for_each(Value::clear);
    result
}

/// Creates the scope of a template with these variables.
pub fn scope(variables: &Map<String, Json>) -> Rc<Scope> {
    let scope = Scope::root();
    for (name, value) in variables {
        scope.set(name, Value::from(value));
    }
    scope
}

struct Interpreter<'m> {
    machine: &'m Machine,
    /// Maximum length of a text that statements write.
    text_len: usize,
}

impl Interpreter<'_> {
    /// Runs statements and returns what they write.
    fn run(&self, body: &Body, scope: &Rc<Scope>) -> Result<Text> {
        let mut values = Vec::new();
        self.collect(body, scope, &mut values)?;
        self.written(&values)
    }

    /// Runs statements up to a `break` or `continue`, and collects their values.
    fn collect(&self, body: &Body, scope: &Rc<Scope>, values: &mut Vec<Value>) -> Result<()> {
        for node in body {
            values.push(self.execute(node, scope)?);
        }
        Ok(())
    }

    /// Returns the text of values, with the items that lists have when all statements have run.
    fn written(&self, values: &[Value]) -> Result<Text> {
        let mut out = Text::default();
        values.iter().try_for_each(|value| self.write(value, &mut out, 0))?;
        Ok(out)
    }

    /// Writes a value: texts, numbers, booleans and the items of lists; nothing for other types.
    fn write(&self, value: &Value, out: &mut Text, depth: usize) -> Result<()> {
        if depth > super::value::MAX_DEPTH {
            return failed("a value is nested too deeply to be printed");
        }
        match value {
            Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                let text = text_of(value, &self.machine.budget)?;
                if out.bytes.len() + text.bytes.len() > self.text_len {
                    return Err(Error::new(ErrorKind::OutputFull).into());
                }
                self.machine.budget.text(text.weight())?;
                out.append(&text);
                Ok(())
            }
            Value::List(list) => {
                let items = list.items.borrow().clone();
                self.machine.budget.list(items.len())?;
                items.iter().try_for_each(|item| self.write(item, out, depth + 1))
            }
            _ => Ok(()),
        }
    }

    /// Executes a statement or expression; errors get its line unless they have one.
    fn execute(&self, node: &Node, scope: &Rc<Scope>) -> Result<Value> {
        let depth = self.machine.depth.get();
        if depth >= MAX_DEPTH {
            return failed("statements and calls are nested too deeply");
        }
        self.machine.budget.spend(1)?;
        self.machine.depth.set(depth + 1);
        let result = self.evaluate(node, scope);
        self.machine.depth.set(depth);
        result.map_err(|stop| stop.at(node.line))
    }
}
