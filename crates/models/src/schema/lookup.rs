//! Standard keys by name.

use crate::schema::key_schema::KeySchema;
use crate::schema::keys::SECTIONS;
use gguf::spelling::distance;

/// The schema of a key as it stands in a file: `llama.block_count`, `general.base_model.0.name`.
///
/// `None` if no standard key has this name.
pub fn key(name: &str) -> Option<&'static KeySchema> {
    let keys = || SECTIONS.iter().flat_map(|section| section.keys);
    keys()
        .find(|key| key.name == name && !name.contains('{'))
        .or_else(|| keys().find(|key| matches(key.name, name)))
}

/// First segments that no architecture has for a name.
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

/// Whether a key's name fits a pattern with placeholders.
fn matches(pattern: &str, name: &str) -> bool {
    // Nearly all patterns have but this placeholder; files can have millions of keys.
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
            // Template names may hold dots.
            (Some("{name}"), Some(segment)) => return !segment.is_empty(),
            (Some(expected), Some(segment)) if expected == segment => {}
            _ => return false,
        }
    }
}

/// The standard key that somebody who wrote `name` may have meant: at most two letters inserted,
/// removed or replaced. Its own architecture prefix is kept.
///
/// `None` if there is none, or if `name` is a standard key.
pub fn nearest_key(name: &str) -> Option<String> {
    const FAR: usize = 2;
    let (first, rest) = name.split_once('.')?;
    let spelled = SECTIONS.iter().flat_map(|section| section.keys).filter_map(|key| {
        match key.name.strip_prefix("{arch}.") {
            Some(_) if RESERVED.contains(&first) => None,
            Some(suffix) => Some((distance(suffix, rest, FAR)?, format!("{first}.{suffix}"))),
            None => Some((distance(key.name, name, FAR)?, key.name.to_owned())),
        }
    });
    spelled.min().filter(|(distance, _)| *distance > 0).map(|(_, key)| key)
}
