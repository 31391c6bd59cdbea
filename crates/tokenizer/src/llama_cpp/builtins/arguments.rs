//! Arguments of functions. The value of a filter or method is the first one, and named ones count as well.

use std::rc::Rc;

use crate::llama_cpp::machine::Machine;
use crate::llama_cpp::result::{Result, failed};
use crate::llama_cpp::value::{Dict, List, Text, Value};

/// A call of a function.
pub struct Call<'c> {
    pub machine: &'c Machine,
    pub name: &'c str,
    pub arguments: Vec<Value>,
}

impl Call<'_> {
    /// Fails unless there are so many arguments.
    pub fn count(&self, least: usize, most: usize) -> Result<()> {
        let count = self.arguments.len();
        if (least..=most).contains(&count) {
            return Ok(());
        }
        failed(format!("{}() takes {least} to {most} arguments, but {count} are given", self.name))
    }

    /// Returns the argument at a place.
    pub fn at(&self, place: usize) -> Result<Value> {
        match self.arguments.get(place) {
            Some(value) => Ok(value.clone()),
            None => failed(format!("{}() takes at least {} arguments", self.name, place + 1)),
        }
    }

    /// Returns the argument at a place, or an undefined value.
    pub fn at_or(&self, place: usize) -> Value {
        self.arguments.get(place).cloned().unwrap_or_else(|| Value::undefined(""))
    }

    /// Returns the argument of this name.
    pub fn keyword(&self, name: &str) -> Option<Value> {
        self.arguments.iter().find_map(|argument| match argument {
            Value::Keyword(keyword) if keyword.0 == name => Some(keyword.1.clone()),
            _ => None,
        })
    }

    /// Returns the argument of this name, else the one at a place unless it has another name, else an undefined value.
    pub fn keyword_or(&self, name: &str, place: usize) -> Value {
        let named = self.keyword(name).filter(|value| !value.is_undefined());
        let at_place = || self.arguments.get(place).filter(|it| !matches!(it, Value::Keyword(_)));
        named.or_else(|| at_place().cloned()).unwrap_or_else(|| Value::undefined(""))
    }

    /// Returns a string argument.
    pub fn text(&self, place: usize) -> Result<Rc<Text>> {
        match self.at(place)? {
            Value::Text(text) => Ok(text),
            other => self.expected("a string", &other),
        }
    }

    /// Returns an integer argument.
    pub fn int(&self, place: usize) -> Result<i64> {
        match self.at(place)? {
            Value::Int(value) => Ok(value),
            other => self.expected("an integer", &other),
        }
    }

    /// Returns the list that a filter applies to.
    pub fn list(&self) -> Result<Rc<List>> {
        match self.at(0)? {
            Value::List(list) => Ok(list),
            other => self.expected("an array", &other),
        }
    }

    /// Returns the dictionary that a method belongs to.
    pub fn dict(&self) -> Result<Rc<Dict>> {
        match self.at(0)? {
            Value::Dict(dict) => Ok(dict),
            other => self.expected("an object", &other),
        }
    }

    /// Fails because an argument has another type.
    pub fn expected<T>(&self, expected: &str, found: &Value) -> Result<T> {
        failed(format!("{}() takes {expected}, got {}", self.name, found.type_name()))
    }
}
