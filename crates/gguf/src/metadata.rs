//! The ordered list of keys and values.

use crate::value::Value;
use crate::value::array::Array;

/// Keys with their values, in file order, duplicates included.
///
/// A file has some dozens of keys, so look-ups scan the list.
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
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// The value of the first entry with this key.
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

    /// Removes every entry with this key and returns the first one's value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.entries.iter().position(|(k, _)| &**k == key)?;
        let (_, value) = self.entries.remove(at);
        self.entries.retain(|(k, _)| &**k != key);
        Some(value)
    }

    /// Gives the first entry with the key `old` another key, in its place, and says whether there
    /// is one.
    pub fn rename(&mut self, old: &str, new: impl Into<Box<str>>) -> bool {
        let entry = self.entries.iter_mut().find(|(key, _)| &**key == old);
        entry.map(|entry| entry.0 = new.into()).is_some()
    }

    /// An integer of any width that is not negative; `None` if missing or of another type.
    pub fn u64(&self, key: &str) -> Option<u64> {
        self.get(key)?.to_u64()
    }

    /// A floating-point number; `None` if missing or of another type.
    pub fn f64(&self, key: &str) -> Option<f64> {
        self.get(key)?.to_f64()
    }

    /// A truth value; `None` if missing or of another type.
    pub fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.to_bool()
    }

    /// A text; `None` if missing, of another type, or not UTF-8.
    pub fn str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// An array; `None` if missing or of another type.
    pub fn array(&self, key: &str) -> Option<&Array> {
        self.get(key)?.as_array()
    }

    /// `general.architecture`: the prefix of the architecture's own keys.
    pub fn architecture(&self) -> Option<&str> {
        self.str("general.architecture")
    }
}

impl<K: Into<Box<str>>> FromIterator<(K, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        Self { entries: entries.into_iter().map(|(key, value)| (key.into(), value)).collect() }
    }
}
