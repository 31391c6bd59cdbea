//! Keys and their values.

use gguf::Value;
use gguf_kit::Error;
use gguf_models::schema;
use serde_json::{Value as Json, json};

use super::Question;
use crate::answer::{Answer, Answered, Failure, cut};
use crate::ask::Named;
use crate::shown::Shown;

/// Characters of a name or a value that are shown at most.
pub const SHOWN: usize = 1000;

/// The longest part of a string, in bytes.
const LONGEST: u64 = 64 << 10;

/// Integers from here on are not exact in the numbers of most programs that read JSON.
const INEXACT: u64 = 1 << 53;

/// `GET keys`.
pub fn keys(question: &Question) -> Answered {
    let (model, page) = (&question.model, question.ask.page()?);
    let metadata = model.model()?.metadata();
    let search = question.ask.search();
    let fits = |(_, (key, value)): &(usize, (&str, &Value))| {
        search.as_deref().is_none_or(|search| {
            key.to_lowercase().contains(search) || shown(value).0.to_lowercase().contains(search)
        })
    };
    let (entries, found) = page.of(metadata.iter().enumerate().filter(fits));
    let keys = entries.into_iter().map(|(n, (key, value))| entry(model, n, key, value));
    let keys = keys.collect::<Result<Json, _>>()?;
    let (total, offset) = (metadata.len(), page.offset);
    Ok(Answer::Json(json!({ "total": total, "found": found, "offset": offset, "keys": keys })))
}

/// `GET key`.
pub fn key(question: &Question) -> Answered {
    let model = &question.model;
    let named = question.ask.named()?;
    let mut all = model.model()?.metadata().iter().enumerate();
    let found = match &named {
        Named::Number(n) => usize::try_from(*n).ok().and_then(|n| all.nth(n)),
        Named::Name(name) => all.find(|(_, (key, _))| key == name),
    };
    let (n, (key, value)) = found.ok_or_else(|| {
        Failure::from(Error::request("name-not-found", "there is no such key", ""))
    })?;
    let mut json = entry(model, n, key, value)?;
    match value {
        Value::Array(array) => {
            let (page, search) = (question.ask.page()?, question.ask.search());
            let fits = |(_, value): &(u64, Value)| {
                search
                    .as_deref()
                    .is_none_or(|search| shown(value).0.to_lowercase().contains(search))
            };
            let (elements, found) = match &search {
                // Those before and after are not looked at.
                None => {
                    let skipped = usize::try_from(page.offset).unwrap_or(usize::MAX);
                    let rest = (0..).zip(array.iter()).skip(skipped);
                    (rest.take(page.limit as usize).collect(), array.len())
                }
                Some(_) => page.of((0..).zip(array.iter()).filter(fits)),
            };
            let element = |(i, value): (u64, Value)| {
                let (text, bytes) = shown(&value);
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
            let page = question.ask.page_of(LONGEST, LONGEST)?;
            let start = usize::try_from(page.offset).unwrap_or(usize::MAX).min(bytes.len());
            let part = &bytes[start..(start + page.limit as usize).min(bytes.len())];
            let text = String::from_utf8_lossy(part);
            json["string"] = json!({ "text": text, "bytes": bytes.len(), "offset": start });
        }
        _ => {}
    }
    Ok(Answer::Json(json))
}

/// An entry of the list.
fn entry(model: &Shown, n: usize, key: &str, value: &Value) -> Result<Json, Failure> {
    let standard = schema::key(key);
    let (text, text_bytes) = shown(value);
    let array = value.as_array();
    let mut json = json!({
        "n": n,
        "name": cut(key.as_bytes(), SHOWN),
        "name_bytes": key.len(),
        "type": value.value_type().name(),
        "element_type": array.map(|array| array.element_type().name()),
        "count": array.map(gguf::Array::len),
        "value": scalar(value),
        "text": text,
        "text_bytes": text_bytes,
        "standard": standard.is_some(),
        "documentation": standard.map(|key| key.meaning),
        "unit": standard.map(|key| key.unit).filter(|unit| !unit.is_empty()),
        "default": standard.map(|key| key.absent.to_string()).filter(|text| !text.is_empty()),
        "file": 0,
        "span": null,
        "value_start": null,
    });
    // Keys are those of the first file, without some that place it among others: its entry is at the same place, or
    // a few later.
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

/// What a line shows of a value, and the bytes of its text.
fn shown(value: &Value) -> (String, usize) {
    match value {
        Value::String(bytes) if bytes.len() > SHOWN => {
            (format!("{:?}", cut(bytes, SHOWN)), bytes.len())
        }
        // A line has the first elements only, however many there are: but one of them can be long.
        value => {
            let text = value.to_string();
            (cut(text.as_bytes(), SHOWN), text.len())
        }
    }
}

/// A value that is no array; null of arrays.
fn scalar(value: &Value) -> Json {
    match value {
        Value::String(bytes) => cut(bytes, SHOWN).into(),
        Value::Array(_) => Json::Null,
        Value::U64(number) if *number > INEXACT => number.to_string().into(),
        Value::I64(number) if number.unsigned_abs() > INEXACT => number.to_string().into(),
        other => gguf_kit::json::value(other, 0),
    }
}
