//! Calls of functions, macros and `caller`.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use super::{Interpreter, MAX_CALLS};
use crate::llama_cpp::builtins::{Call, Native};
use crate::llama_cpp::result::{Result, failed};
use crate::llama_cpp::scope::Scope;
use crate::llama_cpp::syntax::tree::{Kind, Macro, Node};
use crate::llama_cpp::value::{Code, Value};

/// Price of a call of a macro with its scope.
const CALL_STEPS: u64 = 8;

/// A macro, which sees the variables of its caller; or the body of `{% call %}`, with the variables around it.
#[derive(Debug)]
pub(super) struct MacroCode {
    node: Arc<Macro>,
    around: Option<Rc<Scope>>,
}

impl MacroCode {
    pub fn of(node: &Arc<Macro>) -> Self {
        Self { node: Arc::clone(node), around: None }
    }
}

impl Code for MacroCode {}

impl Interpreter<'_> {
    pub(super) fn call(
        &self,
        callee: &Value,
        mut arguments: Vec<Value>,
        scope: &Rc<Scope>,
    ) -> Result<Value> {
        let Value::Function(function) = callee else {
            return failed(format!("Callee is not a function: got {}", callee.type_name()));
        };
        if let Some(this) = &function.this {
            arguments.insert(0, this.clone());
        }
        let code: &dyn Any = &*function.code;
        if let Some(Native(native)) = code.downcast_ref() {
            return native(&Call { machine: self.machine, name: &function.name, arguments });
        }
        let Some(code) = code.downcast_ref::<MacroCode>() else {
            return failed(format!("{} is not a function", function.name));
        };
        self.machine.budget.spend(CALL_STEPS)?;
        let calls = self.machine.calls.get();
        if calls >= MAX_CALLS {
            return failed("macros call each other too deeply");
        }
        self.machine.calls.set(calls + 1);
        let inner = Scope::within(code.around.as_ref().unwrap_or(scope));
        let result = self
            .bind(&code.node, &function.name, arguments, scope, &inner)
            .and_then(|()| self.run(&code.node.body, &inner));
        self.machine.calls.set(calls);
        Ok(Value::Text(result?.into()))
    }

    /// Sets parameters. One beyond the number of arguments gets its default, even if an argument has its name.
    fn bind(
        &self,
        node: &Macro,
        name: &str,
        arguments: Vec<Value>,
        caller: &Rc<Scope>,
        inner: &Scope,
    ) -> Result<()> {
        let call = Call { machine: self.machine, name, arguments };
        for (place, parameter) in node.parameters.iter().enumerate() {
            let (key, default) = match &parameter.kind {
                Kind::Keyword(key, default) => (&**key, Some(default)),
                _ => (parameter, None),
            };
            let Some(key) = key.as_name() else {
                return failed(format!("invalid parameter of '{name}'"));
            };
            let value = if place < call.arguments.len() {
                call.keyword_or(key, place)
            } else if let Some(default) = default {
                self.execute(default, caller)?
            } else {
                return failed(format!("Not enough arguments provided to '{name}'"));
            };
            inner.set(key, value);
        }
        Ok(())
    }

    pub(super) fn call_block(
        &self,
        call: &Node,
        caller: &Arc<Macro>,
        scope: &Rc<Scope>,
    ) -> Result<Value> {
        let Kind::Call(callee, arguments) = &call.kind else {
            return failed("`call` takes a call");
        };
        let callee = self.execute(callee, scope)?;
        if !matches!(callee, Value::Function(_)) {
            return failed(format!("Callee is not a function: got {}", callee.type_name()));
        }
        let around = Some(scope.copy(&self.machine.budget)?);
        let code = MacroCode { node: Arc::clone(caller), around };
        let inner = Scope::within(scope);
        inner.set("caller", Value::function("caller", code, None));
        let arguments = self.each(arguments, scope)?;
        self.call(&callee, arguments, &inner)
    }
}
