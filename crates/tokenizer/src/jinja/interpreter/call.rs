//! Calls of functions, methods, macros, loops and blocks.

use std::rc::Rc;

use super::object::{BlockObject, LoopMethod, LoopObject, MacroObject};
use super::scope::Scope;
use super::{Flow, Interpreter};
use crate::jinja::arguments::{Arguments, required};
use crate::jinja::error::{Result, failed};
use crate::jinja::globals::{CyclerMethod, Function, Joiner};
use crate::jinja::methods;
use crate::jinja::value::{Dict, Value, equal};

impl Interpreter<'_> {
    pub fn call(&mut self, callee: &Value, arguments: Arguments) -> Result<Value> {
        callee.defined()?;
        self.budget().spend(1)?;
        if let Value::Method(method) = callee {
            return methods::call(&method.0, method.1, arguments, self.budget());
        }
        if let Some(function) = callee.downcast::<Function>() {
            return function.call(arguments, &self.machine);
        }
        if let Some(joiner) = callee.downcast::<Joiner>() {
            arguments.none("joiner")?;
            return Ok(joiner.call());
        }
        if let Some(method) = callee.downcast::<CyclerMethod>() {
            arguments.none("next")?;
            return Ok(method.call());
        }
        if let Some(object) = callee.downcast::<MacroObject>() {
            return self.call_macro(object, arguments);
        }
        if let Some(method) = callee.downcast::<LoopMethod>() {
            return self.call_loop_method(method, arguments);
        }
        if let Some(block) = callee.downcast::<BlockObject>() {
            arguments.none(&block.name)?;
            return self.capture(|this, out| {
                this.run_block(&block.name, out)?;
                Ok(Flow::Next)
            });
        }
        if let Some(object) = callee.downcast::<LoopObject>() {
            if !object.node.is_recursive {
                return failed(
                    "The loop must have the 'recursive' marker to be called recursively.",
                );
            }
            let [items] = arguments.bind("loop", ["iterable"])?;
            let items = required(items, "loop")?;
            return self.deeper(|this| {
                this.capture(|this, out| {
                    this.run_loop(&object.node, &items, object.depth + 1, &object.scope, out)?;
                    Ok(Flow::Next)
                })
            });
        }
        failed(format!("'{}' object is not callable", callee.type_name()))
    }

    fn call_macro(&mut self, object: &MacroObject, arguments: Arguments) -> Result<Value> {
        let node = &*object.node;
        let scope = Scope::within(&object.scope);
        // Each parameter is looked up among the named arguments.
        self.budget().list(node.parameters.len().saturating_mul(arguments.named.len()))?;
        let Arguments { positional, mut named } = arguments;
        let mut take = |name: &str| {
            let at = named.iter().position(|(other, _)| other == name)?;
            Some(named.remove(at).1)
        };
        let mut positional = positional.into_iter();
        let mut values = Vec::with_capacity(node.parameters.len());
        for parameter in &node.parameters {
            values.push(positional.next().or_else(|| take(&parameter.name)));
        }
        if node.uses.caller && !node.parameters.iter().any(|p| p.name == "caller") {
            let caller = take("caller").filter(|caller| !caller.is_none());
            scope.set("caller", caller.unwrap_or_else(|| Value::undefined("No caller defined")));
        }
        let rest: Vec<Value> = positional.collect();
        if node.uses.kwargs {
            let named = named.iter().map(|(name, value)| (name.as_str(), value.clone()));
            scope.set("kwargs", Value::Dict(Rc::new(Dict::from_texts(named))));
        } else if let Some((name, _)) = named.first() {
            return failed(format!("macro '{}' takes no keyword argument '{name}'", node.name));
        }
        if node.uses.varargs {
            scope.set("varargs", Value::tuple(rest));
        } else if !rest.is_empty() {
            return failed(format!(
                "macro '{}' takes not more than {} argument(s)",
                node.name,
                node.parameters.len()
            ));
        }
        self.deeper(|this| {
            for (parameter, value) in node.parameters.iter().zip(values) {
                let name = &parameter.name;
                let value = match (value, &parameter.default) {
                    (Some(value), _) => value,
                    (None, Some(default)) => this.evaluate(default, &scope)?,
                    (None, None) => {
                        Value::undefined(format!("parameter '{name}' was not provided"))
                    }
                };
                scope.set(name, value);
            }
            this.capture(|this, out| this.run(&node.body, &scope, out))
        })
    }

    fn call_loop_method(&mut self, method: &LoopMethod, arguments: Arguments) -> Result<Value> {
        let Some(object) = method.receiver.downcast::<LoopObject>() else {
            return failed("the method has no loop");
        };
        let items = arguments.positional;
        if method.is_cycle {
            return match items.len() {
                0 => failed("no items for cycling given"),
                len => Ok(items[(object.index.get() - 1) % len].clone()),
            };
        }
        let value = Value::tuple(items);
        let is_same = match &*object.last_changed.borrow() {
            Some(last) => equal(last, &value, self.budget())?,
            None => false,
        };
        object.last_changed.replace(Some(value));
        Ok(Value::Bool(!is_same))
    }
}
