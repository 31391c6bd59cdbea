//! Loops and assignments.

use std::rc::Rc;

use super::Interpreter;
use crate::llama_cpp::result::{Result, Stop, failed};
use crate::llama_cpp::scope::Scope;
use crate::llama_cpp::syntax::tree::{Body, Kind, Node};
use crate::llama_cpp::value::{Dict, Value};

impl Interpreter<'_> {
    pub(super) fn assign(&self, target: &Node, value: Value, scope: &Rc<Scope>) -> Result<()> {
        match &target.kind {
            Kind::Name(name) => scope.set(name, value),
            Kind::Tuple(targets) => {
                let Value::List(list) = &value else {
                    return failed(format!(
                        "Cannot unpack non-iterable type in set: {}",
                        value.type_name()
                    ));
                };
                let items = list.items.borrow().clone();
                unpack(targets, &items, scope)?;
            }
            Kind::Member(object, property) => {
                let Some(property) = property.as_name() else {
                    return failed("Cannot assign to member with non-identifier property");
                };
                let object = self.execute(object, scope)?;
                let Value::Dict(dict) = &object else {
                    return failed("Cannot assign to member of non-object");
                };
                self.machine.budget.list(4)?;
                dict.set(property, value);
                self.machine.note_change(&object);
            }
            Kind::Item(..) => return failed("Cannot assign to computed member"),
            _ => return failed("`set` takes a name, a tuple of names or a member"),
        }
        Ok(())
    }

    /// Runs a loop. What its body sets stays for the next iteration; `loop` has no methods.
    pub(super) fn for_loop(
        &self,
        target: &Node,
        items: &Node,
        body: &Body,
        otherwise: &Body,
        outer: &Rc<Scope>,
    ) -> Result<Value> {
        let scope = Scope::within(outer);
        let (items, condition) = match &items.kind {
            Kind::Select(items, condition) => (&**items, Some(condition)),
            _ => (items, None),
        };
        let source = self.execute(items, &scope)?;
        self.machine.mark(&source, Some("array_access"));
        let items = match &source {
            Value::Undefined(_) => Vec::new(),
            Value::List(list) => list.items.borrow().clone(),
            Value::Dict(dict) => {
                self.machine.mark(&source, Some("object_access"));
                // A tuple of names takes keys and values.
                let pairs = matches!(target.kind, Kind::Tuple(_));
                let item = |(key, value)| if pairs { Value::tuple(vec![key, value]) } else { key };
                dict.entries().into_iter().map(item).collect()
            }
            other => {
                let kind = other.type_name();
                return failed(format!("Expected iterable or object type in for loop: got {kind}"));
            }
        };
        self.machine.budget.list(items.len())?;
        let mut kept = Vec::new();
        for item in items {
            let inner = Scope::within(&scope);
            check_target(target, &item)?;
            if let Some(condition) = condition {
                set_item(target, &item, &inner)?;
                if !self.execute(condition, &inner)?.is_true()? {
                    continue;
                }
            }
            kept.push(item);
        }
        let mut values = Vec::new();
        let mut ran = false;
        for (index, item) in kept.iter().enumerate() {
            self.machine.budget.spend(LOOP_STEPS)?;
            scope.set("loop", loop_object(index, &kept));
            set_item(target, item, &scope)?;
            match self.collect(body, &scope, &mut values) {
                Ok(()) => ran = true,
                // An iteration that ends so does not count for `else`.
                Err(Stop::Continue) => {}
                Err(Stop::Break) => break,
                Err(error) => return Err(error),
            }
        }
        if !ran {
            self.collect(otherwise, outer, &mut values)?;
        }
        Ok(Value::Text(self.written(&values)?.into()))
    }
}

/// Price of the variable `loop`, a step for each entry.
const LOOP_STEPS: u64 = 9;

/// Returns the variable `loop`: a dictionary.
fn loop_object(index: usize, items: &[Value]) -> Value {
    let int = |value: usize| Value::Int(value as i64);
    let object = Dict::without_methods();
    object.set("index", int(index + 1));
    object.set("index0", int(index));
    object.set("revindex", int(items.len() - index));
    object.set("revindex0", int(items.len() - index - 1));
    object.set("first", Value::Bool(index == 0));
    object.set("last", Value::Bool(index + 1 == items.len()));
    object.set("length", int(items.len()));
    let item = |at: Option<usize>, name: &str| {
        at.and_then(|at| items.get(at)).cloned().unwrap_or_else(|| Value::undefined(name))
    };
    object.set("previtem", item(index.checked_sub(1), "previtem"));
    object.set("nextitem", item(Some(index + 1), "nextitem"));
    Value::Dict(Rc::new(object))
}

/// Fails if an item does not fit the target of a loop.
fn check_target(target: &Node, item: &Value) -> Result<()> {
    match (&target.kind, item) {
        (Kind::Name(_), _) => Ok(()),
        (Kind::Tuple(targets), Value::List(list)) => same_count(targets, list.items.borrow().len()),
        (Kind::Tuple(_), other) => {
            failed(format!("Cannot unpack non-iterable type: {}", other.type_name()))
        }
        _ => failed("a loop takes a name or a tuple of names"),
    }
}

fn same_count(targets: &[Node], count: usize) -> Result<()> {
    if targets.len() == count {
        return Ok(());
    }
    let word = if targets.len() > count { "few" } else { "many" };
    failed(format!("Too {word} items to unpack"))
}

fn set_item(target: &Node, item: &Value, scope: &Scope) -> Result<()> {
    match (&target.kind, item) {
        (Kind::Name(name), _) => scope.set(name, item.clone()),
        (Kind::Tuple(targets), Value::List(list)) => {
            let items = list.items.borrow().clone();
            unpack(targets, &items, scope)?;
        }
        _ => {}
    }
    Ok(())
}

fn unpack(targets: &[Node], items: &[Value], scope: &Scope) -> Result<()> {
    same_count(targets, items.len())?;
    for (target, item) in targets.iter().zip(items) {
        let Some(name) = target.as_name() else {
            return failed("Cannot unpack into anything but names");
        };
        scope.set(name, item.clone());
    }
    Ok(())
}
