//! Metadata keys and their values.

use gguf::{Metadata, Value};
use gguf_kit::Error;
use gguf_models::schema;
use serde_json::{Value as Json, json};

use super::Request;
use crate::models::OpenModel;
use crate::query::Selector;
use crate::response::{ApiError, ApiResult, Response, truncated};

/// Maximum number of characters of a name or value in a response.
pub const MAX_CHARS: usize = 1000;

/// Maximum number of bytes of a string per response.
const MAX_STRING: u64 = 64 << 10;

/// Largest integer that a JSON number (F64) represents exactly.
const MAX_EXACT: u64 = 1 << 53;

/// `GET keys`.
pub fn keys(request: &Request) -> ApiResult {
    let (model, page) = (&request.model, request.query.page()?);
    let metadata = model.model()?.metadata();
    let search = request.query.search();
    let fits = |(_, (key, value)): &(usize, (&str, &Value))| {
        search.as_deref().is_none_or(|search| {
            key.to_lowercase().contains(search) || display(value).0.to_lowercase().contains(search)
        })
    };
    let (entries, found) = page.slice(metadata.iter().enumerate().filter(fits));
    let keys = entries.into_iter().map(|(n, (key, value))| entry(model, n, key, value));
    let keys = keys.collect::<Result<Json, _>>()?;
    let (total, offset) = (metadata.len(), page.offset);
    Ok(Response::Json(json!({ "total": total, "found": found, "offset": offset, "keys": keys })))
}

/// `GET key`.
pub fn key(request: &Request) -> ApiResult {
    let model = &request.model;
    let selector = request.query.selector()?;
    let mut all = model.model()?.metadata().iter().enumerate();
    let found = match &selector {
        Selector::Index(n) => usize::try_from(*n).ok().and_then(|n| all.nth(n)),
        Selector::Name(name) => all.find(|(_, (key, _))| key == name),
    };
    let (n, (key, value)) =
        found.ok_or_else(|| ApiError::from(Error::request("name-not-found", "no such key", "")))?;
    let mut json = entry(model, n, key, value)?;
    match value {
        Value::Array(array) => {
            let (page, search) = (request.query.page()?, request.query.search());
            let fits = |(_, value): &(u64, Value)| {
                search
                    .as_deref()
                    .is_none_or(|search| display(value).0.to_lowercase().contains(search))
            };
            let (elements, found) = match &search {
                // Skip the elements outside the page.
                None => {
                    let skipped = usize::try_from(page.offset).unwrap_or(usize::MAX);
                    let rest = (0..).zip(array.iter()).skip(skipped);
                    (rest.take(page.limit as usize).collect(), array.len())
                }
                Some(_) => page.slice((0..).zip(array.iter()).filter(fits)),
            };
            let element = |(i, value): (u64, Value)| {
                let (text, bytes) = display(&value);
                json!({ "i": i, "value": scalar(&value), "text": text, "text_bytes": bytes })
            };
            json["array"] = json!({
                "total": array.len(),
                "found": found,
                "offset": page.offset,
                "elements": elements.into_iter().map(element).collect::<Json>(),
            });
        }
        Value::String(bytes) => {
            let page = request.query.page_with_limit(MAX_STRING, MAX_STRING)?;
            let start = usize::try_from(page.offset).unwrap_or(usize::MAX).min(bytes.len());
            let part = &bytes[start..(start + page.limit as usize).min(bytes.len())];
            let text = String::from_utf8_lossy(part);
            json["string"] = json!({ "text": text, "bytes": bytes.len(), "offset": start });
        }
        _ => {}
    }
    Ok(Response::Json(json))
}

/// Returns a key as an entry of the list.
fn entry(model: &OpenModel, n: usize, key: &str, value: &Value) -> Result<Json, ApiError> {
    let standard = schema::key(key);
    let (text, text_bytes) = display(value);
    let array = value.as_array();
    let mut json = json!({
        "n": n,
        "name": truncated(key.as_bytes(), MAX_CHARS),
        "name_bytes": key.len(),
        "type": value.value_type().name(),
        "element_type": array.map(|array| array.element_type().name()),
        "count": array.map(gguf::Array::len),
        "value": scalar(value),
        "text": text,
        "text_bytes": text_bytes,
        "label": model.model().ok().and_then(|model| label(model.metadata(), key, value)),
        "standard": standard.is_some(),
        "documentation": standard.map(|key| key.meaning),
        "unit": standard.map(|key| key.unit).filter(|unit| !unit.is_empty()),
        "default": standard.map(|key| key.default.to_string()).filter(|text| !text.is_empty()),
        "file": 0,
        "damage": model.key_damage(key),
        "span": null,
        "value_start": null,
    });
    // The model has the keys of the first file without the `split.*` keys, so the entry is at index `n` or a few later.
    if let (_, Some(gguf)) = model.file(0)? {
        let mut entries = gguf.metadata().iter().zip(&gguf.spans().entries).enumerate().skip(n);
        if let Some((place, (_, span))) = entries.find(|(_, ((other, _), _))| *other == key) {
            let spans = gguf.spans();
            let next = spans.entries.get(place + 1).map(|next| next.start);
            let end = next.or(spans.tensors.first().copied()).unwrap_or(spans.end);
            json["span"] = json!([span.start, end]);
            json["value_start"] = span.value.into();
        }
    }
    Ok(json)
}

/// Adds the values of a changed key as text: `text` and `label` of its sides `a` and `b`, which stand in `metadata`.
pub(super) fn add_text(row: &mut Json, key: &str, sides: [(&str, Option<&Value>, &Metadata); 2]) {
    for (side, value, metadata) in sides {
        if let Some(value) = value {
            row[side]["text"] = display(value).0.into();
            row[side]["label"] = label(metadata, key, value).into();
        }
    }
}

/// Names of the values of enumerations, by the end of their keys.
const ENUMERATIONS: &[(&str, &[(u64, &str)])] = &[
    (".pooling_type", &[(0, "none"), (1, "mean"), (2, "CLS"), (3, "last token"), (4, "rank")]),
    (
        ".expert_gating_func",
        &[(1, "softmax"), (2, "sigmoid"), (3, "softmax over the selected experts")],
    ),
];

/// Returns what a number stands for: the file type, the member of an enumeration, or the text of a token.
fn label(metadata: &Metadata, key: &str, value: &Value) -> Option<String> {
    let number = value.to_u64()?;
    if key == "general.file_type" {
        return Some(gguf::file_type(number)?.name.to_owned());
    }
    if let Some((_, names)) = ENUMERATIONS.iter().find(|(end, _)| key.ends_with(end)) {
        return names.iter().find(|(id, _)| *id == number).map(|(_, name)| (*name).to_owned());
    }
    if key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id") {
        let mut tokens = metadata.array("tokenizer.ggml.tokens")?.strings()?;
        return Some(truncated(tokens.nth(usize::try_from(number).ok()?)?, 200));
    }
    None
}

/// Formats a value on one line; returns the text and its full length in bytes.
fn display(value: &Value) -> (String, usize) {
    match value {
        Value::String(bytes) if bytes.len() > MAX_CHARS => {
            (format!("{:?}", truncated(bytes, MAX_CHARS)), bytes.len())
        }
        // An array is formatted with its first elements only, but one of them can be long.
        value => {
            let text = value.to_string();
            (truncated(text.as_bytes(), MAX_CHARS), text.len())
        }
    }
}

/// Returns a scalar as JSON, and null for an array.
fn scalar(value: &Value) -> Json {
    match value {
        Value::String(bytes) => truncated(bytes, MAX_CHARS).into(),
        Value::Array(_) => Json::Null,
        Value::U64(number) if *number > MAX_EXACT => number.to_string().into(),
        Value::I64(number) if number.unsigned_abs() > MAX_EXACT => number.to_string().into(),
        other => gguf_kit::json::value(other, 0),
    }
}
