//! Members and items. Members of undefined values are undefined; strings and lists have bytes and items.

use std::rc::Rc;

use super::Interpreter;
use crate::llama_cpp::builtins::{Call, Native, place};
use crate::llama_cpp::result::{Result, failed};
use crate::llama_cpp::scope::Scope;
use crate::llama_cpp::syntax::tree::{Kind, Node};
use crate::llama_cpp::value::{Value, is_hashable, text_of};

impl Interpreter<'_> {
    /// Returns `object.property`: a method, else as an item.
    pub(super) fn member(
        &self,
        object: &Node,
        property: &Node,
        scope: &Rc<Scope>,
    ) -> Result<Value> {
        let object = self.execute(object, scope)?;
        let property = match &property.kind {
            Kind::Int(index) if *index < 0 => {
                return failed("Static member property cannot be negative");
            }
            Kind::Int(index) => Value::Int(*index),
            Kind::Name(name) => {
                let method = self.bound(&object, name)?;
                if !method.is_undefined() {
                    return Ok(method);
                }
                self.machine.budget.text(name.len())?;
                Value::text(name.as_bytes())
            }
            _ => return failed("Static member property must be an identifier"),
        };
        self.of(&object, &property)
    }

    /// Returns `object[property]`.
    pub(super) fn item(&self, object: &Node, property: &Node, scope: &Rc<Scope>) -> Result<Value> {
        let object = self.execute(object, scope)?;
        if let Kind::Slice(parts) = &property.kind {
            return self.slice(object, parts, scope);
        }
        let property = self.execute(property, scope)?;
        self.of(&object, &property)
    }

    /// Returns a method bound to its value, or an undefined value.
    fn bound(&self, object: &Value, name: &str) -> Result<Value> {
        Ok(match self.method(object, name)? {
            Some(function) => Value::function(name, Native(function), Some(object.clone())),
            None => Value::undefined(name),
        })
    }

    fn of(&self, object: &Value, property: &Value) -> Result<Value> {
        let missing = Value::undefined("object_property");
        if property.is_undefined() {
            return Ok(missing);
        }
        if !is_hashable(property, &self.machine.budget)? {
            let kind = property.type_name();
            return failed(format!("Type: {kind} is not allowed as object key"));
        }
        let is_index = matches!(property, Value::Int(_) | Value::Bool(_));
        let value = match object {
            Value::Undefined(_) => return Ok(missing),
            Value::Dict(dict) => {
                let name = text_of(property, &self.machine.budget)?;
                match dict
                    .get(property, &self.machine.budget)?
                    .filter(|value| !value.is_undefined())
                {
                    Some(value) => value,
                    None => self.bound(object, &name.lossy())?,
                }
            }
            Value::List(_) | Value::Text(_) => match (object, property) {
                (Value::List(list), _) if is_index => {
                    let items = list.items.borrow();
                    place(property.as_int()?, items.len()).map_or(missing, |at| items[at].clone())
                }
                (Value::Text(text), _) if is_index => {
                    let byte = usize::try_from(property.as_int()?).ok();
                    let byte = byte.and_then(|at| text.bytes.get(at).copied());
                    byte.map_or(missing, |byte| Value::text([byte]))
                }
                (_, Value::Text(name)) => self.bound(object, &name.lossy())?,
                _ => missing,
            },
            _ => match property {
                Value::Text(name) => self.bound(object, &name.lossy())?,
                other => {
                    let kind = other.type_name();
                    return failed(format!("Cannot access property with non-string: got {kind}"));
                }
            },
        };
        let is_key = match property {
            Value::Text(_) | Value::Float(_) | Value::List(_) | Value::None => true,
            _ => matches!(object, Value::Dict(_)),
        };
        self.machine.mark(&value, None);
        self.machine.mark(property, None);
        self.machine.mark(object, is_key.then_some("object_access"));
        if !is_key && is_index {
            self.machine.mark(object, Some("array_access"));
        }
        Ok(value)
    }

    fn slice(
        &self,
        object: Value,
        parts: &[Option<Box<Node>>; 3],
        scope: &Rc<Scope>,
    ) -> Result<Value> {
        let len = match &object {
            Value::List(list) => list.items.borrow().len(),
            Value::Text(text) => text.bytes.len(),
            _ => 0,
        } as i64;
        let [start, stop, step] = parts;
        let part = |part: &Option<Box<Node>>| {
            part.as_ref().map(|part| self.execute(part, scope)).transpose()
        };
        let step = part(step)?.unwrap_or(Value::Int(1));
        let start = match part(start)? {
            Some(start) => start,
            None => Value::Int(if step.as_int()? < 0 { len - 1 } else { 0 }),
        };
        let stop = match part(stop)? {
            Some(stop) => stop,
            None => Value::Int(if step.as_int()? < 0 { -1 } else { len }),
        };
        match self.method(&object, "slice")? {
            Some(function) => {
                let arguments = vec![object, start, stop, step];
                function(&Call { machine: self.machine, name: "slice", arguments })
            }
            None => {
                failed(format!("Unknown (built-in) filter 'slice' for type {}", object.type_name()))
            }
        }
    }
}
