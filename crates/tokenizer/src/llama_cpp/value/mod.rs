//! Values of llama.cpp's templates (`common/jinja/value.h`). Lists and dictionaries are shared and can change.

mod compare;
mod dict;
mod json;
mod number;
mod text;

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Debug;
use std::rc::Rc;

pub use compare::{Order, compare, equal, is_hashable};
pub use dict::Dict;
pub use json::{JsonStyle, to_json};
pub use number::{float_text, int_as_float, to_int};
use serde_json::Value as Json;
pub use text::{Text, text_of};

use super::result::{Result, failed};

/// Maximum nesting of a value that is printed, compared or written as JSON.
pub const MAX_DEPTH: usize = 900;

/// A value of a template.
#[derive(Clone, Debug)]
pub enum Value {
    /// Undefined, with its name if it has one.
    Undefined(Rc<str>),
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<Text>),
    List(Rc<List>),
    Dict(Rc<Dict>),
    Function(Rc<Function>),
    /// An argument with a name.
    Keyword(Rc<(String, Value)>),
}

/// A list or tuple.
#[derive(Debug)]
pub struct List {
    pub items: RefCell<Vec<Value>>,
    pub is_tuple: bool,
}

/// A function, and the value that it is a method of.
#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub code: Box<dyn Code>,
    pub this: Option<Value>,
}

/// Code of a function.
pub trait Code: Any + Debug {}

impl Value {
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::Text(Rc::new(Text::from(text.into())))
    }

    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Rc::new(List { items: RefCell::new(items), is_tuple: false }))
    }

    pub fn tuple(items: Vec<Value>) -> Self {
        Self::List(Rc::new(List { items: RefCell::new(items), is_tuple: true }))
    }

    pub fn function(name: &str, code: impl Code, this: Option<Value>) -> Self {
        Self::Function(Rc::new(Function { name: name.to_owned(), code: Box::new(code), this }))
    }

    /// An undefined value of this name.
    pub fn undefined(name: &str) -> Self {
        Self::Undefined(name.into())
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_))
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Name of the type in llama.cpp's messages.
    pub fn type_name(&self) -> String {
        let name = match self {
            Self::Undefined(name) if !name.is_empty() => {
                return format!("Undefined (hint: '{name}')");
            }
            Self::Undefined(_) => "Undefined",
            Self::None => "None",
            Self::Bool(_) => "Boolean",
            Self::Int(_) => "Integer",
            Self::Float(_) => "Float",
            Self::Text(_) => "String",
            Self::List(list) if list.is_tuple => "Tuple",
            Self::List(_) => "Array",
            Self::Dict(_) => "Object",
            Self::Function(_) => "Function",
            Self::Keyword(_) => "KwArg",
        };
        name.to_owned()
    }

    /// Truth; functions have none.
    pub fn is_true(&self) -> Result<bool> {
        Ok(match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.bytes.is_empty(),
            Self::List(list) => !list.items.borrow().is_empty(),
            Self::Dict(dict) => !dict.is_empty(),
            Self::Function(_) | Self::Keyword(_) => {
                return failed(format!("{} is not a bool value", self.type_name()));
            }
        })
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Float(_))
    }

    /// Returns an integer; a float without its fraction.
    pub fn as_int(&self) -> Result<i64> {
        Ok(match self {
            Self::Int(value) => *value,
            Self::Bool(value) => i64::from(*value),
            Self::Float(value) if value.is_finite() => to_int(*value),
            Self::Float(_) => 0,
            _ => return failed(format!("{} is not an int value", self.type_name())),
        })
    }

    /// Returns a number as a float.
    pub fn as_float(&self) -> Result<f64> {
        Ok(match self {
            Self::Int(value) => int_as_float(*value),
            Self::Float(value) => *value,
            _ => return failed(format!("{} is not a float value", self.type_name())),
        })
    }

    /// Address by which the capability analysis knows a value.
    pub fn address(&self) -> Option<usize> {
        Some(match self {
            Self::Text(text) => Rc::as_ptr(text) as usize,
            Self::List(list) => Rc::as_ptr(list) as usize,
            Self::Dict(dict) => Rc::as_ptr(dict) as usize,
            _ => return None,
        })
    }

    /// Forgets the items of a list or dictionary, which may contain itself.
    pub fn clear(&self) {
        match self {
            Self::List(list) => drop(list.items.take()),
            Self::Dict(dict) => dict.clear(),
            _ => {}
        }
    }
}

impl From<&Json> for Value {
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Self::Int(value),
                (_, Some(value)) => Self::Int(value as i64),
                _ => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::text(text.as_bytes()),
            Json::Array(items) => Self::list(items.iter().map(Self::from).collect()),
            Json::Object(items) => {
                let dict = Dict::new();
                for (key, value) in items {
                    dict.set(key, Self::from(value));
                }
                Self::Dict(Rc::new(dict))
            }
        }
    }
}
