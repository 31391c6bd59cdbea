//! Variables of a block, and of those around it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::jinja::value::Value;

/// Variables that a block sets; those of outer blocks are visible in it.
#[derive(Debug, Default)]
pub struct Scope {
    names: RefCell<HashMap<String, Value>>,
    parent: Option<Rc<Scope>>,
    has_macros: Cell<bool>,
}

impl Scope {
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

    /// Notes that a macro is defined in the scope. Returns whether it is the first one.
    pub fn is_first_macro(&self) -> bool {
        !self.has_macros.replace(true)
    }

    /// Forgets the variables. A macro and its scope refer to each other otherwise.
    pub fn clear(&self) {
        let names = std::mem::take(&mut *self.names.borrow_mut());
        drop(names);
    }
}
