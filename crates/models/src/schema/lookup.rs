//! Lookup of standard keys by name.

use gguf::suggest::distance;

use crate::schema::key_schema::KeySchema;
use crate::schema::keys::SECTIONS;

/// Returns the schema of a key of a file, such as `llama.block_count` or `general.base_model.0.name`;
/// `None` if it is not a standard key.
pub fn key(name: &str) -> Option<&'static KeySchema> {
    let keys = || SECTIONS.iter().flat_map(|section| section.keys);
    keys()
        .find(|key| key.name == name && !name.contains('{'))
        .or_else(|| keys().find(|key| matches(key.name, name)))
}

/// First segments of keys that are not names of architectures.
const RESERVED: &[&str] = &[
    "general",
    "tokenizer",
    "split",
    "adapter",
    "imatrix",
    "quantize",
    "clip",
    "training",
    "optimizer",
    "diffusion",
    "xielu",
];

/// Returns true if the name of a key matches a pattern with placeholders.
fn matches(pattern: &str, name: &str) -> bool {
    // Fast path for the most common placeholder: files can have millions of keys.
    if let Some(suffix) = pattern.strip_prefix("{arch}") {
        return name.strip_suffix(suffix).is_some_and(|arch| {
            !arch.is_empty() && !arch.contains('.') && !RESERVED.contains(&arch)
        });
    }
    let (mut pattern, mut name) = (pattern.split('.'), name.split('.'));
    loop {
        match (pattern.next(), name.next()) {
            (None, None) => return true,
            (Some("{id}"), Some(segment))
                if !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit()) => {}
            // Template names may contain dots.
            (Some("{name}"), Some(segment)) => return !segment.is_empty(),
            (Some(expected), Some(segment)) if expected == segment => {}
            _ => return false,
        }
    }
}

/// Returns the standard key most similar to a misspelled `name`, at an edit distance of at most 2, with the
/// architecture prefix of `name`.
///
/// `None` if there is none, or if `name` is a standard key.
pub fn nearest_key(name: &str) -> Option<String> {
    const MAX_DISTANCE: usize = 2;
    let (first, rest) = name.split_once('.')?;
    let candidates = SECTIONS.iter().flat_map(|section| section.keys).filter_map(|key| {
        match key.name.strip_prefix("{arch}.") {
            Some(_) if RESERVED.contains(&first) => None,
            Some(suffix) => {
                Some((distance(suffix, rest, MAX_DISTANCE)?, format!("{first}.{suffix}")))
            }
            None => Some((distance(key.name, name, MAX_DISTANCE)?, key.name.to_owned())),
        }
    });
    candidates.min().filter(|(distance, _)| *distance > 0).map(|(_, key)| key)
}
