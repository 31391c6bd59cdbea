//! Variables of a block, and of those around it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::result::Result;
use super::value::Value;
use crate::jinja::Budget;

/// Variables that a block sets; those of outer blocks are visible in it.
#[derive(Debug, Default)]
pub struct Scope {
    names: RefCell<HashMap<String, Value>>,
    parent: Option<Rc<Scope>>,
}

impl Scope {
    /// Creates the scope of a template, in which constants are variables.
    pub fn root() -> Rc<Self> {
        let scope = Self::default();
        for name in ["true", "True", "false", "False"] {
            scope.set(name, Value::Bool(name.eq_ignore_ascii_case("true")));
        }
        for name in ["none", "None"] {
            scope.set(name, Value::None);
        }
        Rc::new(scope)
    }

    /// Creates the scope of a block within another.
    pub fn within(parent: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self { parent: Some(Rc::clone(parent)), ..Self::default() })
    }

    pub fn set(&self, name: &str, value: Value) {
        self.names.borrow_mut().insert(name.to_owned(), value);
    }

    pub fn get(&self, name: &str) -> Option<Value> {
        let mut scope = self;
        loop {
            if let Some(value) = scope.names.borrow().get(name) {
                return Some(value.clone());
            }
            scope = scope.parent.as_ref()?;
        }
    }

    /// Copies the variables that are visible, as they are now.
    pub fn copy(&self, budget: &Budget) -> Result<Rc<Self>> {
        let mut names = HashMap::new();
        let mut scope = Some(self);
        while let Some(current) = scope {
            let own = current.names.borrow();
            budget.list(own.len())?;
            for (name, value) in own.iter() {
                names.entry(name.clone()).or_insert_with(|| value.clone());
            }
            scope = current.parent.as_deref();
        }
        Ok(Rc::new(Self { names: RefCell::new(names), parent: None }))
    }
}
