//! Ordered list of keys and values.

use crate::value::Value;
use crate::value::array::Array;

/// Keys with their values, in file order, including duplicates.
///
/// Lookups scan the list: files have only dozens of keys.
///
/// ```
/// use gguf::Metadata;
/// let mut metadata = Metadata::new();
/// metadata.set("llama.block_count", 32u32);
/// metadata.set("general.name", "Tiny");
/// assert_eq!(metadata.u64("llama.block_count"), Some(32));
/// assert_eq!(metadata.str("general.name"), Some("Tiny"));
/// assert_eq!(metadata.str("llama.block_count"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    entries: Vec<(Box<str>, Value)>,
}

impl Metadata {
    /// Returns an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns all entries in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// Returns the value of the first entry with this key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// Appends an entry, even if the key exists already.
    pub fn push(&mut self, key: impl Into<Box<str>>, value: impl Into<Value>) {
        self.entries.push((key.into(), value.into()));
    }

    /// Replaces the value of the first entry with this key, or appends one.
    pub fn set(&mut self, key: impl Into<Box<str>>, value: impl Into<Value>) {
        let (key, value) = (key.into(), value.into());
        match self.entries.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key, value)),
        }
    }

    /// Removes every entry with this key and returns the value of the first.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.entries.iter().position(|(k, _)| &**k == key)?;
        let (_, value) = self.entries.remove(at);
        self.entries.retain(|(k, _)| &**k != key);
        Some(value)
    }

    /// Renames the first entry with the key `old`, in place. Returns false if there is none.
    pub fn rename(&mut self, old: &str, new: impl Into<Box<str>>) -> bool {
        let entry = self.entries.iter_mut().find(|(key, _)| &**key == old);
        entry.map(|entry| entry.0 = new.into()).is_some()
    }

    /// Returns an integer of any type that is not negative; `None` if missing or of another type.
    pub fn u64(&self, key: &str) -> Option<u64> {
        self.get(key)?.to_u64()
    }

    /// Returns a floating-point number; `None` if missing or of another type.
    pub fn f64(&self, key: &str) -> Option<f64> {
        self.get(key)?.to_f64()
    }

    /// Returns a boolean; `None` if missing or of another type.
    pub fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.to_bool()
    }

    /// Returns a string; `None` if missing, of another type, or not UTF-8.
    pub fn str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Returns an array; `None` if missing or of another type.
    pub fn array(&self, key: &str) -> Option<&Array> {
        self.get(key)?.as_array()
    }

    /// Returns `general.architecture`, which is the prefix of the architecture's keys.
    pub fn architecture(&self) -> Option<&str> {
        self.str("general.architecture")
    }
}

impl<K: Into<Box<str>>> FromIterator<(K, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        Self { entries: entries.into_iter().map(|(key, value)| (key.into(), value)).collect() }
    }
}
