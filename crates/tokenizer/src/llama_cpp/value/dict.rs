//! Dictionaries in the order of insertion.

use std::cell::RefCell;
use std::collections::HashMap;

use super::{Value, is_hashable};
use crate::jinja::Budget;
use crate::llama_cpp::result::{Result, failed};

/// Elements of a list that take as much memory as an entry.
const ENTRY: usize = 4;

/// A hashable value; equal keys are equal values, such as 1, 1.0 and true.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    None,
    Int(i64),
    /// Bits of a float that is not an integer.
    Float(u64),
    Text(Vec<u8>),
    Tuple(Vec<Key>),
}

impl Key {
    /// Returns the key of a value, or fails if it can change.
    fn of(value: &Value, budget: &Budget) -> Result<Self> {
        let is_mutable = match value {
            Value::List(list) => !list.is_tuple,
            Value::Dict(_) => true,
            _ => false,
        };
        if is_mutable || !is_hashable(value, budget)? {
            return failed(format!("Object key of unhashable type: {}", value.type_name()));
        }
        Self::of_hashable(value, budget)
    }

    fn of_hashable(value: &Value, budget: &Budget) -> Result<Self> {
        budget.list(1)?;
        Ok(match value {
            Value::None => Self::None,
            Value::Float(value) if *value != value.trunc() || value.abs() >= 2f64.powi(63) => {
                Self::Float(value.to_bits())
            }
            Value::Text(text) => {
                budget.text(text.bytes.len())?;
                Self::Text(text.bytes.clone())
            }
            Value::List(list) => {
                let items = list.items.borrow();
                let items = items.iter().map(|item| Self::of_hashable(item, budget));
                Self::Tuple(items.collect::<Result<_>>()?)
            }
            other => Self::Int(other.as_int()?),
        })
    }
}

#[derive(Debug, Default)]
struct Entries {
    list: Vec<(Value, Value)>,
    places: HashMap<Key, usize>,
}

/// A dictionary, namespace or `loop`.
#[derive(Debug)]
pub struct Dict {
    entries: RefCell<Entries>,
    /// Whether it has methods; `loop` has none.
    pub has_methods: bool,
}

impl Dict {
    pub fn new() -> Self {
        Self { entries: RefCell::default(), has_methods: true }
    }

    pub fn without_methods() -> Self {
        Self { has_methods: false, ..Self::new() }
    }

    pub fn insert(&self, key: Value, value: Value, budget: &Budget) -> Result<()> {
        budget.list(ENTRY)?;
        let hashed = Key::of(&key, budget)?;
        self.put(hashed, key, value);
        Ok(())
    }

    fn put(&self, hashed: Key, key: Value, value: Value) {
        let entries = &mut *self.entries.borrow_mut();
        match entries.places.get(&hashed) {
            Some(place) => entries.list[*place].1 = value,
            None => {
                entries.places.insert(hashed, entries.list.len());
                entries.list.push((key, value));
            }
        }
    }

    /// Sets the value of a string.
    pub fn set(&self, key: &str, value: Value) {
        self.put(Key::Text(key.into()), Value::text(key), value);
    }

    /// Returns the value of a key, or fails if it is none.
    pub fn get(&self, key: &Value, budget: &Budget) -> Result<Option<Value>> {
        let hashed = Key::of(key, budget)?;
        let entries = self.entries.borrow();
        Ok(entries.places.get(&hashed).map(|place| entries.list[*place].1.clone()))
    }

    /// Returns the value of a string.
    pub fn of_name(&self, key: &str) -> Option<Value> {
        let entries = self.entries.borrow();
        entries.places.get(&Key::Text(key.into())).map(|place| entries.list[*place].1.clone())
    }

    pub fn len(&self) -> usize {
        self.entries.borrow().list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys and values in order.
    pub fn entries(&self) -> Vec<(Value, Value)> {
        self.entries.borrow().list.clone()
    }

    pub fn clear(&self) {
        drop(self.entries.take());
    }
}
