//! Objects that run statements when they are called.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use super::scope::Scope;
use crate::jinja::syntax::tree::{Loop, Macro};
use crate::jinja::value::{Object, Value, repr_text};

/// A macro, and the scope that it was defined in.
#[derive(Debug)]
pub struct MacroObject {
    pub node: Arc<Macro>,
    pub scope: Rc<Scope>,
}

impl Object for MacroObject {
    fn attribute(&self, name: &str) -> Option<Value> {
        let Macro { name: macro_name, parameters, uses, .. } = &*self.node;
        Some(match name {
            "name" => Value::text(macro_name.as_str()),
            "arguments" => {
                Value::tuple(parameters.iter().map(|p| Value::text(p.name.as_str())).collect())
            }
            "catch_kwargs" => Value::Bool(uses.kwargs),
            "catch_varargs" => Value::Bool(uses.varargs),
            "caller" => Value::Bool(uses.caller),
            _ => return None,
        })
    }

    fn repr(&self) -> String {
        format!("<Macro {}>", repr_text(&self.node.name))
    }

    fn is_callable(&self) -> bool {
        true
    }
}

/// The variable `loop`.
#[derive(Debug)]
pub struct LoopObject {
    pub node: Arc<Loop>,
    pub scope: Rc<Scope>,
    /// Items that follow and pass the condition.
    pub next: RefCell<VecDeque<Value>>,
    /// Items after them, whose condition is not known.
    pub rest: RefCell<VecDeque<Value>>,
    pub previous: RefCell<Option<Value>>,
    pub current: RefCell<Option<Value>>,
    /// Number of the current item, from 1.
    pub index: Cell<usize>,
    pub depth: usize,
    pub last_changed: RefCell<Option<Value>>,
}

impl LoopObject {
    /// Number of items, if the condition of all is known.
    fn len(&self) -> usize {
        self.index.get() + self.next.borrow().len() + self.rest.borrow().len()
    }
}

/// Attributes for which the next item must be known, and those for which all must be.
pub const NEEDS_NEXT: [&str; 2] = ["last", "nextitem"];
pub const NEEDS_ALL: [&str; 3] = ["length", "revindex", "revindex0"];

impl Object for LoopObject {
    fn attribute(&self, name: &str) -> Option<Value> {
        let int = |value: usize| Value::Int(value as i128);
        let index = self.index.get();
        Some(match name {
            "index" => int(index),
            "index0" => int(index.saturating_sub(1)),
            "revindex" => int(self.len() + 1 - index),
            "revindex0" => int(self.len() - index),
            "first" => Value::Bool(index == 1),
            "last" => Value::Bool(self.next.borrow().is_empty() && self.rest.borrow().is_empty()),
            "length" => int(self.len()),
            "depth" => int(self.depth),
            "depth0" => int(self.depth - 1),
            "previtem" => match &*self.previous.borrow() {
                Some(item) => item.clone(),
                None => Value::undefined("there is no previous item"),
            },
            "nextitem" => {
                let next = self.next.borrow();
                match next.front().or(self.rest.borrow().front()) {
                    Some(item) => item.clone(),
                    None => Value::undefined("there is no next item"),
                }
            }
            _ => return None,
        })
    }

    fn repr(&self) -> String {
        format!("<LoopContext {}/{}>", self.index.get(), self.len())
    }

    fn is_callable(&self) -> bool {
        self.node.is_recursive
    }
}

/// The methods `cycle` and `changed` of `loop`.
#[derive(Debug)]
pub struct LoopMethod {
    pub receiver: Value,
    pub is_cycle: bool,
}

impl Object for LoopMethod {
    fn attribute(&self, _: &str) -> Option<Value> {
        None
    }

    fn repr(&self) -> String {
        "<bound method of a LoopContext>".into()
    }

    fn is_callable(&self) -> bool {
        true
    }
}

/// The variable `self`, whose attributes are the blocks of the template.
#[derive(Debug)]
pub struct TemplateObject {
    pub blocks: Vec<String>,
}

impl Object for TemplateObject {
    fn attribute(&self, name: &str) -> Option<Value> {
        let block = self.blocks.iter().find(|block| *block == name)?;
        Some(Value::object(BlockObject { name: block.clone() }))
    }

    fn repr(&self) -> String {
        "<TemplateReference None>".into()
    }

    fn is_callable(&self) -> bool {
        false
    }
}

/// A block that renders when it is called.
#[derive(Debug)]
pub struct BlockObject {
    pub name: String,
}

impl Object for BlockObject {
    fn attribute(&self, name: &str) -> Option<Value> {
        (name == "name").then(|| Value::text(self.name.as_str()))
    }

    fn repr(&self) -> String {
        format!("<BlockReference {}>", repr_text(&self.name))
    }

    fn is_callable(&self) -> bool {
        true
    }
}
