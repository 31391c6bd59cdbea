//! Differences of two models: `diff/2`.

use gguf::Value;
use gguf_inspect::{Change, Detail, Diff, KeyChange};
use gguf_quant::Difference;
use serde_json::{Value as Json, json};

use super::value::{SHORT_ARRAY, typed_value, value};

/// Serializes a comparison of two models: `diff/2`.
pub fn diff(diff: &Diff) -> Json {
    let keys: Vec<_> = diff.keys.iter().map(key_change).collect();
    let tensors: Vec<_> = diff
        .tensors
        .iter()
        .map(|tensor| {
            let side = |ty: gguf::TensorType, shape: Option<gguf::Shape>| {
                json!({ "type": ty.name(), "shape": shape.map(|shape| shape.to_vec()) })
            };
            let (change, a, b, figures) = match tensor.change {
                Change::Added(ty, shape) => ("added", None, Some(side(ty, Some(shape))), None),
                Change::Removed(ty, shape) => ("removed", Some(side(ty, Some(shape))), None, None),
                Change::Reshaped { a, b } => {
                    ("reshaped", Some(side(a.0, Some(a.1))), Some(side(b.0, Some(b.1))), None)
                }
                Change::Data { a, b, figures } => {
                    ("data", Some(side(a, None)), Some(side(b, None)), figures)
                }
            };
            json!({
                "name": tensor.name, "change": change, "a": a, "b": b,
                "figures": figures.as_ref().map(self::figures),
            })
        })
        .collect();
    json!({
        "keys": keys,
        "tensors": tensors,
        "same_tensors": diff.same,
        "total": (diff.total.elements > 0).then(|| figures(&diff.total)),
        "verdict": diff.verdict.to_string(),
    })
}

/// Serializes the error statistics of a tensor.
pub fn figures(figures: &Difference) -> Json {
    json!({
        "elements": figures.elements,
        "rmse": figures.rmse(),
        "relative": figures.relative(),
        "cosine": figures.cosine(),
        "max": figures.max,
    })
}

/// Serializes the difference of a key: an item of `keys` of `diff/2`.
pub fn key_change(change: &KeyChange) -> Json {
    let side = |value: &Option<Value>| value.as_ref().map(|value| typed_value(value, SHORT_ARRAY));
    let element =
        |value: &Option<Value>| value.as_ref().map(|value| self::value(value, SHORT_ARRAY));
    let detail = match &change.detail {
        Detail::None => Json::Null,
        Detail::Elements { lengths, differing, first } => json!({
            "lengths": [lengths.0, lengths.1],
            "differing": differing,
            "first": first.iter().map(|e| json!([e.index, element(&e.a), element(&e.b)])).collect::<Json>(),
        }),
        Detail::Line { number, a, b } => json!({ "line": number, "a": a, "b": b }),
    };
    json!({ "key": change.key, "a": side(&change.a), "b": side(&change.b), "detail": detail })
}
