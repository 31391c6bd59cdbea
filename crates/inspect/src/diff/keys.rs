//! Differences of metadata.

use gguf::{Array, Metadata, Value};
use gguf_store::edit::RESERVE_KEY;

/// A key that differs, or that only one model has.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyChange {
    /// The key.
    pub key: String,
    /// Value in A; `None` if A lacks the key.
    pub a: Option<Value>,
    /// Value in B; `None` if B lacks the key.
    pub b: Option<Value>,
    /// Position of the difference in a long value.
    pub detail: Detail,
}

/// Position of the difference in a long value.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// No details.
    None,
    /// Arrays of the same element type, such as vocabularies.
    Elements {
        /// Number of elements in A and in B.
        lengths: (u64, u64),
        /// Number of different elements, missing ones included.
        differing: u64,
        /// The first differences.
        first: Vec<ElementChange>,
    },
    /// Multi-line texts, such as chat templates.
    Line {
        /// Number of the first different line, counted from 1.
        number: usize,
        /// Truncated line in A; empty after its end.
        a: String,
        /// Truncated line in B; empty after its end.
        b: String,
    },
}

/// A different array element.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementChange {
    /// Index of the element; the token id in a vocabulary.
    pub index: u64,
    /// Value in A; `None` after its end.
    pub a: Option<Value>,
    /// Value in B; `None` after its end.
    pub b: Option<Value>,
}

/// Returns the different keys: those of A in order, then those that only B has. Header padding does not count.
pub fn compare(a: &Metadata, b: &Metadata) -> Vec<KeyChange> {
    let is_padding = |(key, _): &(&str, &Value)| *key == RESERVE_KEY;
    let changed = a.iter().filter(|entry| !is_padding(entry)).filter_map(|(key, value)| {
        let other = b.get(key);
        (other != Some(value)).then(|| KeyChange {
            key: key.to_owned(),
            a: Some(value.clone()),
            b: other.cloned(),
            detail: other.map_or(Detail::None, |other| detail(value, other)),
        })
    });
    let added = b.iter().filter(|entry| !is_padding(entry) && a.get(entry.0).is_none());
    let added = added.map(|(key, value)| KeyChange {
        key: key.to_owned(),
        a: None,
        b: Some(value.clone()),
        detail: Detail::None,
    });
    changed.chain(added).collect()
}

fn detail(a: &Value, b: &Value) -> Detail {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if a.element_type() == b.element_type() => {
            elements(a, b)
        }
        _ => match (a.as_str(), b.as_str()) {
            (Some(a), Some(b)) if a.contains('\n') || b.contains('\n') => line(a, b),
            _ => Detail::None,
        },
    }
}

fn elements(a: &Array, b: &Array) -> Detail {
    const FIRST: usize = 5;
    let (mut left, mut right) = (a.iter(), b.iter());
    let mut differing = 0;
    let mut first = Vec::new();
    for index in 0..a.len().max(b.len()) {
        let (a, b) = (left.next(), right.next());
        if a == b {
            continue;
        }
        differing += 1;
        if first.len() < FIRST {
            first.push(ElementChange { index, a, b });
        }
    }
    Detail::Elements { lengths: (a.len(), b.len()), differing, first }
}

fn line(a: &str, b: &str) -> Detail {
    let same = a.lines().zip(b.lines()).take_while(|(a, b)| a == b).count();
    let shown = |text: &str| truncated(text.lines().nth(same).unwrap_or_default());
    Detail::Line { number: same + 1, a: shown(a), b: shown(b) }
}

fn truncated(text: &str) -> String {
    const MAX_CHARS: usize = 100;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
