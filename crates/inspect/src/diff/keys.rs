//! Metadata of two models side by side.

use gguf::{Array, Metadata, Value};

/// A key with other values, or that only one side has.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyChange {
    /// The key.
    pub key: String,
    /// The value in A, shortened to a line; `None` if A lacks it.
    pub a: Option<String>,
    /// The value in B, shortened to a line; `None` if B lacks it.
    pub b: Option<String>,
    /// Where in a long value the difference is.
    pub detail: Detail,
}

/// Where in a long value the difference is.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// The values say it all.
    None,
    /// In arrays, such as a vocabulary, of the same element type.
    Elements {
        /// Elements in A and in B.
        lengths: (u64, u64),
        /// Elements that differ, missing ones included.
        differing: u64,
        /// The first few of them.
        first: Vec<ElementChange>,
    },
    /// In texts of several lines, such as a chat template.
    Line {
        /// The first line that differs, from 1.
        number: usize,
        /// This line in A, shortened; empty if it ended before.
        a: String,
        /// This line in B, shortened; empty if it ended before.
        b: String,
    },
}

/// An element of an array that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementChange {
    /// Its index: the id, in a vocabulary.
    pub index: u64,
    /// In A; `None` past its end.
    pub a: Option<String>,
    /// In B; `None` past its end.
    pub b: Option<String>,
}

/// Keys with other values, those of A in its order, then those that only B has.
pub fn compare(a: &Metadata, b: &Metadata) -> Vec<KeyChange> {
    let changed = a.iter().filter_map(|(key, value)| {
        let other = b.get(key);
        (other != Some(value)).then(|| KeyChange {
            key: key.to_owned(),
            a: Some(shortened(&value.to_string())),
            b: other.map(|other| shortened(&other.to_string())),
            detail: other.map_or(Detail::None, |other| detail(value, other)),
        })
    });
    let added = b.iter().filter(|(key, _)| a.get(key).is_none()).map(|(key, value)| KeyChange {
        key: key.to_owned(),
        a: None,
        b: Some(shortened(&value.to_string())),
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
            let shown = |value: Option<Value>| value.map(|value| shortened(&value.to_string()));
            first.push(ElementChange { index, a: shown(a), b: shown(b) });
        }
    }
    Detail::Elements { lengths: (a.len(), b.len()), differing, first }
}

fn line(a: &str, b: &str) -> Detail {
    let same = a.lines().zip(b.lines()).take_while(|(a, b)| a == b).count();
    let shown = |text: &str| shortened(text.lines().nth(same).unwrap_or_default());
    Detail::Line { number: same + 1, a: shown(a), b: shown(b) }
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 100;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
