//! Values with the semantics of Python. All are immutable but for iterators and namespaces.

mod compare;
mod dict;
mod float;
mod range;
mod repr;

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::rc::Rc;

pub use compare::{equal, less};
pub use dict::{Dict, Key};
pub use float::float_repr;
pub use range::Range;
pub use repr::{is_printable, repr, repr_text, text_of};
use serde_json::Value as Json;

use super::budget::Budget;
use super::error::{Result, failed};

/// Maximum nesting of a value that is printed, compared or written as JSON; about that of Python.
pub const MAX_DEPTH: usize = 900;

/// A string, and whether it is `Markup`: HTML that needs no escapes.
#[derive(Clone, Debug)]
pub struct Text {
    pub text: Rc<str>,
    pub is_markup: bool,
}

/// A value of a template.
#[derive(Clone, Debug)]
pub enum Value {
    /// Undefined, with the message of the error if it is used.
    Undefined(Rc<str>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Text),
    List(Rc<Vec<Value>>),
    Tuple(Rc<Vec<Value>>),
    /// Tuple with the attributes `grouper` and `list`, of the filter `groupby`.
    Group(Rc<[Value; 2]>),
    Dict(Rc<Dict>),
    Range(Range),
    /// `dict.keys()`, `dict.values()` or `dict.items()`.
    View(Rc<Dict>, ViewKind),
    /// An iterator, which yields its items once.
    Iterator(Rc<RefCell<VecDeque<Value>>>),
    /// Variables that can be set; `Machine` keeps a list of them.
    Namespace(Rc<RefCell<Dict>>),
    /// Bound method of a value.
    Method(Rc<(Value, &'static str)>),
    /// A function, a macro, `loop` and other objects.
    Object(Rc<dyn Object>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    Keys,
    Values,
    Items,
}

/// A value with attributes of its own.
pub trait Object: Any + Debug {
    /// Returns an attribute.
    fn attribute(&self, name: &str) -> Option<Value>;

    /// Text that Python prints.
    fn repr(&self) -> String;

    /// Whether it can be called.
    fn is_callable(&self) -> bool;
}

impl Value {
    /// Creates a plain string.
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text { text: text.into(), is_markup: false })
    }

    /// Creates a string that is `Markup` or not.
    pub fn markup(text: impl Into<Rc<str>>, is_markup: bool) -> Self {
        Self::Text(Text { text: text.into(), is_markup })
    }

    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Rc::new(items))
    }

    pub fn tuple(items: Vec<Value>) -> Self {
        Self::Tuple(Rc::new(items))
    }

    pub fn iterator(items: Vec<Value>) -> Self {
        Self::Iterator(Rc::new(RefCell::new(items.into())))
    }

    pub fn object(object: impl Object) -> Self {
        Self::Object(Rc::new(object))
    }

    /// Creates an undefined value; `cause` is the message of the error if it is used.
    pub fn undefined(cause: impl Into<Rc<str>>) -> Self {
        Self::Undefined(cause.into())
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_))
    }

    /// Returns the items of a tuple.
    pub fn as_tuple(&self) -> Option<&[Value]> {
        match self {
            Self::Tuple(items) => Some(items),
            Self::Group(items) => Some(&items[..]),
            _ => None,
        }
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Truth as in Python.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.text.is_empty(),
            _ => self.len().is_none_or(|len| len > 0),
        }
    }

    /// Number of elements, or of characters of a string; `None` if the value has no length.
    pub fn len(&self) -> Option<usize> {
        Some(match self {
            Self::Undefined(_) => 0,
            Self::Text(text) => text.text.chars().count(),
            Self::List(items) | Self::Tuple(items) => items.len(),
            Self::Group(_) => 2,
            Self::Dict(dict) | Self::View(dict, _) => dict.len(),
            Self::Range(range) => range.len(),
            Self::Object(object) => match object.attribute("length") {
                Some(Self::Int(len)) => usize::try_from(len).ok()?,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Takes the steps for reading a text, or each element of a container once.
    pub fn pay(&self, budget: &Budget) -> Result<()> {
        match self {
            Self::Text(text) => budget.text(text.text.len()),
            Self::List(items) | Self::Tuple(items) => budget.list(items.len()),
            Self::Dict(dict) | Self::View(dict, _) => budget.list(dict.len()),
            Self::Range(range) => budget.list(range.len()),
            Self::Iterator(items) => budget.list(items.borrow().len()),
            _ => Ok(()),
        }
    }

    /// Returns the elements, as iteration over the value; an iterator is used up.
    pub fn items(&self, budget: &Budget) -> Result<Vec<Value>> {
        match self {
            // Each character becomes a string.
            Self::Text(text) => budget.list(text.text.len().saturating_mul(2))?,
            other => other.pay(budget)?,
        }
        Ok(match self {
            Self::Undefined(_) => Vec::new(),
            Self::Text(text) => {
                text.text.chars().map(|char| Self::text(char.to_string())).collect()
            }
            Self::List(items) | Self::Tuple(items) => items.to_vec(),
            Self::Group(items) => items.to_vec(),
            Self::Dict(dict) | Self::View(dict, ViewKind::Keys) => dict.keys().cloned().collect(),
            Self::View(dict, ViewKind::Values) => dict.values().cloned().collect(),
            Self::View(dict, ViewKind::Items) => {
                dict.iter().map(|(k, v)| Self::tuple(vec![k.clone(), v.clone()])).collect()
            }
            Self::Range(range) => range.iter().map(Self::Int).collect(),
            Self::Iterator(items) => std::mem::take(&mut *items.borrow_mut()).into(),
            other => return failed(format!("'{}' object is not iterable", other.type_name())),
        })
    }

    /// Name of the type in Python.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "Undefined",
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(text) => {
                if text.is_markup {
                    "Markup"
                } else {
                    "str"
                }
            }
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Group(_) => "_GroupTuple",
            Self::Dict(_) => "dict",
            Self::Range(_) => "range",
            Self::View(_, ViewKind::Keys) => "dict_keys",
            Self::View(_, ViewKind::Values) => "dict_values",
            Self::View(_, ViewKind::Items) => "dict_items",
            Self::Iterator(_) => "generator",
            Self::Namespace(_) => "Namespace",
            Self::Method(_) => "builtin_function_or_method",
            Self::Object(_) => "object",
        }
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    pub fn is_markup(&self) -> bool {
        matches!(self, Self::Text(Text { is_markup: true, .. }))
    }

    /// Returns an integer; a boolean is one, as in Python.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// Returns a number as a float.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            other => other.as_int().map(|value| value as f64),
        }
    }

    /// Fails with the cause of an undefined value.
    pub fn defined(&self) -> Result<()> {
        match self {
            Self::Undefined(cause) => failed(&**cause),
            _ => Ok(()),
        }
    }

    /// Returns a string, or fails.
    pub fn expect_str(&self) -> Result<&str> {
        self.defined()?;
        match self.as_str() {
            Some(text) => Ok(text),
            None => failed(format!("expected str, not {}", self.type_name())),
        }
    }

    /// Returns an integer, or fails.
    pub fn expect_int(&self) -> Result<i128> {
        self.defined()?;
        match self.as_int() {
            Some(value) => Ok(value),
            None => {
                failed(format!("'{}' object cannot be interpreted as an integer", self.type_name()))
            }
        }
    }

    /// Returns the object of this type.
    pub fn downcast<T: Object>(&self) -> Option<&T> {
        match self {
            Self::Object(object) => (&**object as &dyn Any).downcast_ref(),
            _ => None,
        }
    }
}

impl From<&Json> for Value {
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Self::Int(value.into()),
                (_, Some(value)) => Self::Int(value.into()),
                _ => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(items) => Self::list(items.iter().map(Self::from).collect()),
            Json::Object(items) => Self::Dict(Rc::new(Dict::from_texts(
                items.iter().map(|(key, value)| (key.as_str(), Self::from(value))),
            ))),
        }
    }
}
