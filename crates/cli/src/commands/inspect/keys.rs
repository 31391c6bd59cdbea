//! Metadata keys of a model.

use gguf::{Metadata, Value};
use gguf_kit::json::{SHORT_ARRAY, typed_value, value as value_json};
use gguf_store::edit::RESERVE_KEY;
use serde_json::Value as Json;

use super::glob::{Glob, no_match};
use crate::failure::Failure;
use crate::{listing, terminal};

fn matching<'m>(
    metadata: &'m Metadata,
    pattern: &str,
) -> Result<Vec<(&'m str, &'m Value)>, Failure> {
    let glob = Glob::new(pattern)?;
    let keys: Vec<_> = metadata.iter().filter(|(key, _)| glob.matches(key)).collect();
    match keys.is_empty() && pattern != "*" {
        true => Err(no_match("key", pattern)),
        false => Ok(keys),
    }
}

pub fn text(metadata: &Metadata, pattern: &str, in_full: bool) -> Result<String, Failure> {
    let keys = matching(metadata, pattern)?;
    let widest = keys.iter().map(|(key, _)| console::measure_text_width(key)).max().unwrap_or(0);
    let widest = widest.min(44);
    let lines = keys.iter().map(|(key, value)| {
        let kind = match value.as_array() {
            Some(array) => format!("{}[{}]", array.element_type(), array.len()),
            None => value.value_type().to_string(),
        };
        let key = terminal::plain(key);
        let line = match value {
            _ if key == RESERVE_KEY && !in_full => "header padding for edits in place".to_owned(),
            Value::Array(_) if in_full => value_json(value, u64::MAX).to_string(),
            value if in_full => value.to_string(),
            value => listing::shortened(&value.to_string()),
        };
        let line = format!("  {key:<widest$}  {:<12} {line}", kind.to_lowercase());
        if in_full { line } else { terminal::fit(&line) }
    });
    let lines: Vec<_> = lines.collect();
    Ok(format!("{}\n{}\n", terminal::strong(listing::plural(keys.len(), "key")), lines.join("\n")))
}

pub fn to_json(metadata: &Metadata, pattern: &str, in_full: bool) -> Result<Json, Failure> {
    let longest = if in_full { u64::MAX } else { SHORT_ARRAY };
    let entry = |(key, value): &(&str, &Value)| ((*key).to_owned(), typed_value(value, longest));
    Ok(Json::Object(matching(metadata, pattern)?.iter().map(entry).collect()))
}
