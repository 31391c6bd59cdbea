//! Dictionaries: in the order of insertion, with Python's equality of keys.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use super::{MAX_DEPTH, Text, Value, ViewKind};
use crate::jinja::budget::Budget;
use crate::jinja::error::{Result, failed};

/// Elements of a list that take as much memory as an entry.
const ENTRY: usize = 4;

/// A hashable value; equal keys are equal values, such as 1, 1.0 and True.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    None,
    Undefined,
    Int(i128),
    /// Bits of a float that is not an integer.
    Float(u64),
    Text(Rc<str>),
    Tuple(Vec<Key>),
    Range(Vec<i128>),
    /// Address of an object.
    Object(usize),
}

impl Key {
    /// Returns the key of a value, or fails if it is not hashable.
    pub fn of(value: &Value, budget: &Budget) -> Result<Self> {
        Self::of_nested(value, budget, 0)
    }

    fn of_nested(value: &Value, budget: &Budget, depth: usize) -> Result<Self> {
        value.pay(budget)?;
        if depth > MAX_DEPTH {
            return failed("maximum recursion depth exceeded while hashing an object");
        }
        let nested = |item: &Value| Self::of_nested(item, budget, depth + 1);
        Ok(match value {
            Value::None => Self::None,
            Value::Undefined(_) => Self::Undefined,
            Value::Float(value) => match value.fract() == 0.0 && value.abs() < 1e38 {
                true => Self::Int(*value as i128),
                false => Self::Float(value.to_bits()),
            },
            Value::Text(Text { text, .. }) => Self::Text(Rc::clone(text)),
            Value::View(dict, ViewKind::Values) => Self::Object(Rc::as_ptr(dict) as usize),
            Value::Tuple(items) => Self::Tuple(items.iter().map(nested).collect::<Result<_>>()?),
            Value::Range(range) => Self::Range(range.identity()),
            Value::Namespace(names) => Self::Object(Rc::as_ptr(names) as usize),
            Value::Iterator(items) => Self::Object(Rc::as_ptr(items) as usize),
            Value::Object(object) => Self::Object(Rc::as_ptr(object) as *const u8 as usize),
            other => match other.as_int() {
                Some(value) => Self::Int(value),
                None => return failed(format!("unhashable type: '{}'", other.type_name())),
            },
        })
    }
}

/// A dictionary.
#[derive(Debug, Default)]
pub struct Dict {
    entries: Vec<(Value, Value)>,
    places: HashMap<Key, usize>,
}

impl Dict {
    /// Creates a dictionary of strings.
    pub fn from_texts<'a>(items: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut dict = Self::default();
        for (key, value) in items {
            dict.set(key, value);
        }
        dict
    }

    /// Sets a value; an existing key stays as it is.
    pub fn insert(&mut self, key: Value, value: Value, budget: &Budget) -> Result<()> {
        budget.list(ENTRY)?;
        self.put(Key::of(&key, budget)?, key, value);
        Ok(())
    }

    /// Sets the value of a string.
    pub fn set(&mut self, key: &str, value: Value) {
        let key: Rc<str> = key.into();
        self.put(Key::Text(Rc::clone(&key)), Value::text(key), value);
    }

    /// Returns the value of a string.
    pub fn of_name(&self, key: &str) -> Option<&Value> {
        self.places.get(&Key::Text(key.into())).map(|place| &self.entries[*place].1)
    }

    fn put(&mut self, hashed: Key, key: Value, value: Value) {
        match self.places.entry(hashed) {
            Entry::Occupied(place) => self.entries[*place.get()].1 = value,
            Entry::Vacant(place) => {
                place.insert(self.entries.len());
                self.entries.push((key, value));
            }
        }
    }

    /// Returns the value of a key, or fails if it is not hashable.
    pub fn get(&self, key: &Value, budget: &Budget) -> Result<Option<&Value>> {
        Ok(self.places.get(&Key::of(key, budget)?).map(|place| &self.entries[*place].1))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Value, &Value)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Value> {
        self.entries.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> {
        self.entries.iter().map(|(_, value)| value)
    }
}
