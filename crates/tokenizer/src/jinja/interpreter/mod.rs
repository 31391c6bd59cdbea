//! Interpreter: runs statements and evaluates expressions.

mod call;
mod evaluate;
mod object;
mod scope;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use object::{LoopObject, MacroObject};
use scope::Scope;
use serde_json::{Map, Value as Json};

use super::budget::Budget;
use super::error::{Error, ErrorKind, Result, failed};
use super::filters;
use super::globals::check_name;
use super::machine::Machine;
use super::markup::escape;
use super::syntax::tree::{
    Body, Expression, FilterCall, Loop, Statement, StatementKind, Target, Tree,
};
use super::value::{Value, text_of};

/// Maximum depth of calls of macros, blocks and recursive loops; Python's recursion limit allows
/// about as many.
const MAX_CALLS: usize = 250;

/// Maximum depth of bodies and expressions in all calls; each takes one or two kilobytes of stack.
const MAX_DEPTH: usize = 5000;

/// Limits and time of a rendering.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum number of steps.
    pub steps: u64,
    /// Maximum length of the output in bytes.
    pub text_len: usize,
    /// Time that `strftime_now` formats, in UTC.
    pub now: SystemTime,
}

/// Renders a template with these variables.
///
/// # Errors
/// If the template fails, calls `raise_exception`, or exceeds a limit.
pub fn render(tree: &Tree, variables: &Map<String, Json>, options: Options) -> Result<String> {
    let machine = Machine {
        budget: Budget::new(options.steps),
        autoescape: Cell::new(false),
        now: options.now,
        filters: Cell::new(0),
        namespaces: RefCell::default(),
    };
    let root = Rc::new(Scope::default());
    for (name, value) in variables {
        root.set(name, Value::from(value));
    }
    let mut interpreter = Interpreter {
        tree,
        machine,
        root: Rc::clone(&root),
        text_len: options.text_len,
        calls: 0,
        depth: 0,
        macro_scopes: Vec::new(),
    };
    let mut out = Output { text: String::new(), limit: options.text_len };
    let result = interpreter.run(&tree.body, &root, &mut out);
    interpreter.macro_scopes.iter().for_each(|scope| scope.clear());
    interpreter.machine.namespaces.take().iter().for_each(|names| drop(names.take()));
    result.map(|_| out.text)
}

/// Text that has been written, at most `limit` bytes.
struct Output {
    text: String,
    limit: usize,
}

impl Output {
    fn write(&mut self, text: &str, budget: &Budget) -> Result<()> {
        if text.len() > self.limit - self.text.len() {
            return Err(Error::new(ErrorKind::OutputFull));
        }
        budget.text(text.len())?;
        self.text.push_str(text);
        Ok(())
    }
}

/// How a body ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Interpreter<'a> {
    tree: &'a Tree,
    machine: Machine,
    root: Rc<Scope>,
    text_len: usize,
    /// Depth of calls.
    calls: usize,
    /// Depth of bodies and expressions.
    depth: usize,
    /// Scopes that macros refer to.
    macro_scopes: Vec<Rc<Scope>>,
}

impl Interpreter<'_> {
    fn budget(&self) -> &Budget {
        &self.machine.budget
    }

    fn run(&mut self, body: &Body, scope: &Rc<Scope>, out: &mut Output) -> Result<Flow> {
        self.nested(|this| this.run_all(body, scope, out))
    }

    /// Runs a part of the template one level deeper.
    fn nested<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return failed("maximum recursion depth exceeded");
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    fn run_all(&mut self, body: &Body, scope: &Rc<Scope>, out: &mut Output) -> Result<Flow> {
        for statement in body {
            let flow = self.statement(statement, scope, out);
            match flow.map_err(|error| error.at(statement.line))? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(
        &mut self,
        statement: &Statement,
        scope: &Rc<Scope>,
        out: &mut Output,
    ) -> Result<Flow> {
        self.budget().spend(1)?;
        match &statement.kind {
            StatementKind::Text(text) => out.write(text, self.budget())?,
            StatementKind::Print(value) => {
                let value = self.evaluate(value, scope)?;
                let text = match self.machine.autoescape.get() {
                    true => escape(&value, self.budget())?,
                    false => text_of(&value, self.budget())?,
                };
                out.write(&text, self.budget())?;
            }
            StatementKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.evaluate(condition, scope)?.is_true() {
                        return self.run(body, scope, out);
                    }
                }
                return self.run(otherwise, scope, out);
            }
            StatementKind::For(node) => {
                let items = self.evaluate(&node.items, scope)?;
                self.run_loop(node, &items, 1, scope, out)?;
            }
            StatementKind::Continue => return Ok(Flow::Continue),
            StatementKind::Break => return Ok(Flow::Break),
            StatementKind::Set { target, value } => {
                let value = self.evaluate(value, scope)?;
                self.assign(target, value, scope)?;
            }
            StatementKind::SetBlock { target, filters, body } => {
                let inner = Scope::within(scope);
                let text = self.capture(|this, out| this.run(body, &inner, out))?;
                let value = self.filtered(text, filters, scope)?;
                self.assign(target, value, scope)?;
            }
            StatementKind::With { assignments, body } => {
                let inner = Scope::within(scope);
                for (target, value) in assignments {
                    let value = self.evaluate(value, scope)?;
                    self.assign(target, value, &inner)?;
                }
                return self.run(body, &inner, out);
            }
            StatementKind::Macro(node) => {
                let value = self.macro_object(node, scope);
                scope.set(&node.name, value);
            }
            StatementKind::Call { call, caller } => {
                let caller = self.macro_object(caller, scope);
                let Expression::Call(callee, arguments) = call else {
                    return failed("expected call");
                };
                let callee = self.evaluate(callee, scope)?;
                let mut arguments = self.arguments(arguments, scope)?;
                arguments.named.push(("caller".into(), caller));
                let value = self.call(&callee, arguments)?;
                let text = text_of(&value, self.budget())?;
                out.write(&text, self.budget())?;
            }
            StatementKind::Filter { filters, body } => {
                let inner = Scope::within(scope);
                let text = self.capture(|this, out| this.run(body, &inner, out))?;
                let value = self.filtered(text, filters, scope)?;
                let text = text_of(&value, self.budget())?;
                out.write(&text, self.budget())?;
            }
            StatementKind::AutoEscape { enabled, body } => {
                let enabled = self.evaluate(enabled, scope)?.is_true();
                let outer = self.machine.autoescape.replace(enabled);
                let inner = Scope::within(scope);
                let flow = self.run(body, &inner, out);
                self.machine.autoescape.set(outer);
                return flow;
            }
            StatementKind::Block(name) => self.run_block(name, out)?,
            StatementKind::Generation(body) => {
                let inner = Scope::within(scope);
                self.run(body, &inner, out)?;
            }
            StatementKind::Load => {
                return failed("a chat template cannot load other templates");
            }
        }
        Ok(Flow::Next)
    }

    /// Runs statements, and returns what they write.
    fn capture(
        &mut self,
        run: impl FnOnce(&mut Self, &mut Output) -> Result<Flow>,
    ) -> Result<Value> {
        let mut out = Output { text: String::new(), limit: self.text_len };
        run(self, &mut out)?;
        Ok(Value::markup(out.text, self.machine.autoescape.get()))
    }

    fn filtered(
        &mut self,
        mut value: Value,
        filters: &[FilterCall],
        scope: &Rc<Scope>,
    ) -> Result<Value> {
        for filter in filters {
            let arguments = self.arguments(&filter.arguments, scope)?;
            value = filters::call(&filter.name, &value, arguments, &self.machine)?;
        }
        Ok(value)
    }

    fn macro_object(&mut self, node: &Arc<super::syntax::tree::Macro>, scope: &Rc<Scope>) -> Value {
        if scope.is_first_macro() {
            self.macro_scopes.push(Rc::clone(scope));
        }
        Value::object(MacroObject { node: Arc::clone(node), scope: Rc::clone(scope) })
    }

    fn assign(&mut self, target: &Target, value: Value, scope: &Rc<Scope>) -> Result<()> {
        match target {
            Target::Name(name) => scope.set(name, value),
            Target::Attribute(name, attribute) => {
                let Some(Value::Namespace(names)) = scope.get(name) else {
                    return failed("cannot assign attribute on non-namespace object");
                };
                check_name(attribute)?;
                names.borrow_mut().set(attribute, value);
            }
            Target::Tuple(targets) => {
                value.defined()?;
                let items = value.items(self.budget())?;
                if items.len() != targets.len() {
                    return failed(format!(
                        "cannot unpack {} values into {} names",
                        items.len(),
                        targets.len()
                    ));
                }
                for (target, item) in targets.iter().zip(items) {
                    self.assign(target, item, scope)?;
                }
            }
        }
        Ok(())
    }

    fn run_block(&mut self, name: &str, out: &mut Output) -> Result<()> {
        let Some((_, body)) = self.tree.blocks.iter().find(|(other, _)| other == name) else {
            return failed(format!("no block named '{name}'"));
        };
        let scope = Scope::within(&self.root);
        self.deeper(|this| this.run(body, &scope, out).map(drop))
    }

    /// Runs a call one level deeper.
    fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.calls >= MAX_CALLS {
            return failed("maximum recursion depth exceeded");
        }
        self.calls += 1;
        let result = run(self);
        self.calls -= 1;
        result
    }

    /// Runs a loop over these items at this depth of recursion.
    fn run_loop(
        &mut self,
        node: &Arc<Loop>,
        items: &Value,
        depth: usize,
        scope: &Rc<Scope>,
        out: &mut Output,
    ) -> Result<()> {
        let items = items.items(self.budget())?;
        let object = Rc::new(LoopObject {
            node: Arc::clone(node),
            scope: Rc::clone(scope),
            next: RefCell::default(),
            rest: RefCell::new(VecDeque::from(items)),
            previous: RefCell::default(),
            current: RefCell::default(),
            index: Cell::new(0),
            depth,
            last_changed: RefCell::default(),
        });
        while self.find_next(&object)? {
            let Some(item) = object.next.borrow_mut().pop_front() else { break };
            self.budget().spend(1)?;
            object.index.set(object.index.get() + 1);
            let before = object.current.replace(Some(item.clone()));
            object.previous.replace(before);
            let inner = Scope::within(scope);
            inner.set("loop", Value::Object(Rc::clone(&object) as Rc<dyn super::value::Object>));
            self.assign(&node.target, item, &inner)?;
            if self.run(&node.body, &inner, out)? == Flow::Break {
                return Ok(());
            }
        }
        if object.index.get() == 0 {
            self.run(&node.otherwise, &Scope::within(scope), out)?;
        }
        Ok(())
    }

    /// Finds the next item that passes the condition of the loop; false if there is none.
    fn find_next(&mut self, object: &LoopObject) -> Result<bool> {
        if !object.next.borrow().is_empty() {
            return Ok(true);
        }
        loop {
            let item = object.rest.borrow_mut().pop_front();
            let Some(item) = item else { return Ok(false) };
            if self.passes(object, &item)? {
                object.next.borrow_mut().push_back(item);
                return Ok(true);
            }
        }
    }

    /// Finds all items that pass the condition of the loop.
    fn find_all(&mut self, object: &LoopObject) -> Result<()> {
        let rest = object.rest.take();
        for item in rest {
            if self.passes(object, &item)? {
                object.next.borrow_mut().push_back(item);
            }
        }
        Ok(())
    }

    fn passes(&mut self, object: &LoopObject, item: &Value) -> Result<bool> {
        let Some(condition) = &object.node.condition else { return Ok(true) };
        self.budget().spend(1)?;
        let scope = Scope::within(&object.scope);
        self.assign(&object.node.target, item.clone(), &scope)?;
        Ok(self.evaluate(condition, &scope)?.is_true())
    }
}
