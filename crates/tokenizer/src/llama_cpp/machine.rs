//! State of a rendering.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::time::SystemTime;

use super::value::Value;
use crate::jinja::Budget;

/// Budget, time and records of a rendering.
#[derive(Debug)]
pub struct Machine {
    pub budget: Budget,
    /// Time that `strftime_now` formats, in UTC.
    pub now: SystemTime,
    /// Uses of values by the template, if the capability analysis asks.
    pub usage: Option<Usage>,
    /// Lists and dictionaries that changed: they may contain themselves, and are emptied at the end.
    pub changed: RefCell<Vec<Value>>,
    /// Depth of statements and expressions.
    pub depth: Cell<usize>,
    /// Depth of calls of macros.
    pub calls: Cell<usize>,
}

impl Machine {
    pub fn new(steps: u64, now: SystemTime, usage: Option<Usage>) -> Self {
        Self {
            budget: Budget::new(steps),
            now,
            usage,
            changed: RefCell::default(),
            depth: Cell::new(0),
            calls: Cell::new(0),
        }
    }

    /// Records that a value is used, and by which operation.
    pub fn mark(&self, value: &Value, operation: Option<&str>) {
        if let (Some(usage), Some(address)) = (&self.usage, value.address()) {
            let mut operations = usage.0.borrow_mut();
            operations.entry(address).or_default().extend(operation.map(str::to_owned));
        }
    }

    /// Records that a value is used with everything in it.
    pub fn mark_all(&self, value: &Value) {
        if self.usage.is_none() || self.budget.spend(1).is_err() {
            return;
        }
        self.mark(value, None);
        match value {
            Value::List(list) => list.items.borrow().iter().for_each(|item| self.mark_all(item)),
            Value::Dict(dict) => dict.entries().iter().for_each(|(key, value)| {
                self.mark_all(key);
                self.mark_all(value);
            }),
            _ => {}
        }
    }

    /// Notes that a list or dictionary changed.
    pub fn note_change(&self, value: &Value) {
        self.changed.borrow_mut().push(value.clone());
    }
}

/// Operations on texts, lists and dictionaries, by their addresses.
#[derive(Debug, Default)]
pub struct Usage(RefCell<HashMap<usize, BTreeSet<String>>>);

impl Usage {
    /// Whether the template read a value.
    pub fn is_used(&self, value: &Value) -> bool {
        value.address().is_some_and(|address| self.0.borrow().contains_key(&address))
    }

    /// Whether the template applied an operation to a value.
    pub fn has(&self, value: &Value, operation: &str) -> bool {
        let operations = self.0.borrow();
        let found = value.address().and_then(|address| operations.get(&address));
        found.is_some_and(|operations| operations.contains(operation))
    }
}
