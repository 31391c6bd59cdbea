//! Comparison of two models.

use std::collections::HashMap;
use std::sync::Arc;

use gguf_inspect::diff_keys;
use gguf_kit::json::{figures, key_change};
use gguf_kit::values::{Differences, error_figures, statistics};
use gguf_store::ModelTensor;
use serde_json::{Value as Json, json};

use super::tensors::{MAX_TENSORS, statistics_json, tile_response};
use crate::jobs::CancelFlag;
use crate::models::OpenModel;
use crate::query::Query;
use crate::response::{ApiError, ApiResult, Response};

/// A request about two models.
pub struct Request<'a> {
    pub a: &'a Arc<OpenModel>,
    pub b: &'a Arc<OpenModel>,
    pub query: &'a Query,
    pub cancel: &'a CancelFlag,
}

/// `GET keys`.
pub fn keys(request: &Request) -> ApiResult {
    let (a, b) = (request.a.model()?.metadata(), request.b.model()?.metadata());
    let changes = diff_keys(a, b);
    let same = a.iter().filter(|(key, value)| b.get(key) == Some(*value)).count();
    let keys = changes.iter().map(|change| {
        let mut row = key_change(change);
        let sides = [("a", change.a.as_ref(), a), ("b", change.b.as_ref(), b)];
        super::keys::add_text(&mut row, &change.key, sides);
        row
    });
    let keys = keys.collect::<Json>();
    Ok(Response::Json(json!({ "keys": keys, "same": same })))
}

/// `GET tensors`.
pub fn tensors(request: &Request) -> ApiResult {
    let (a, b) = (request.a.model()?.tensors(), request.b.model()?.tensors());
    fn index(tensors: &[ModelTensor]) -> HashMap<&str, (usize, &ModelTensor)> {
        tensors.iter().enumerate().map(|(n, tensor)| (&*tensor.info.name, (n, tensor))).collect()
    }
    let (in_a, in_b) = (index(a), index(b));
    let side = |found: Option<&(usize, &ModelTensor)>| {
        found.map(|(n, tensor)| {
            let info = &tensor.info;
            json!({ "n": n, "type": info.tensor_type.name(), "shape": &info.shape[..] })
        })
    };
    let entry = |name: &str| {
        let (in_a, in_b) = (in_a.get(name), in_b.get(name));
        let change = match (in_a, in_b) {
            (Some((_, a)), Some((_, b))) if a.info.shape == b.info.shape => "data",
            (Some(_), Some(_)) => "reshaped",
            (Some(_), None) => "removed",
            (None, _) => "added",
        };
        let shown = crate::response::truncated(name.as_bytes(), super::keys::MAX_CHARS);
        json!({ "name": shown, "change": change, "a": side(in_a), "b": side(in_b) })
    };
    let names = a.iter().map(|tensor| &*tensor.info.name);
    let only_b = b.iter().map(|tensor| &*tensor.info.name).filter(|name| !in_a.contains_key(name));
    let page = request.query.page_with_limit(MAX_TENSORS, MAX_TENSORS)?;
    let (listed, total) = page.slice(names.chain(only_b));
    let listed = listed.into_iter().map(entry).collect::<Json>();
    Ok(Response::Json(json!({ "total": total, "offset": page.offset, "tensors": listed })))
}

/// Returns the selected tensor of both models. An index counts in the first model.
fn tensor_pair<'q>(request: &Request<'q>) -> Result<(&'q ModelTensor, &'q ModelTensor), ApiError> {
    let (_, a) = request.a.tensor(&request.query.selector()?)?;
    let (_, b) = request.b.tensor(&crate::query::Selector::Name(a.info.name.clone()))?;
    Ok((a, b))
}

/// `GET tensor`.
pub fn tensor(request: &Request) -> ApiResult {
    let (a, b) = tensor_pair(request)?;
    let differences = Differences::of(a, b)?;
    let budget = match request.query.parsed_or("exact", false)? {
        true => u64::MAX,
        false => request.a.budget().statistics.min(request.b.budget().statistics),
    };
    let (errors, exact) = error_figures(&differences, budget, request.cancel)?;
    let found = statistics(&differences, budget, request.cancel)?;
    let mut json = statistics_json(&found);
    if let (Json::Object(json), Json::Object(errors)) = (&mut json, figures(&errors)) {
        json.extend(errors);
        json.insert("elements".into(), found.count.into());
    }
    json["exact"] = (exact && found.exact).into();
    json["same"] = (errors.squared_error == 0.0 && exact).into();
    Ok(Response::Json(json))
}

/// `GET tile`.
pub fn tile(request: &Request) -> ApiResult {
    let (a, b) = tensor_pair(request)?;
    // The budget of a remote model is the smaller one.
    let remote = if request.b.files.is_remote() { request.b } else { request.a };
    let budget = remote.budget().tile;
    tile_response(&Differences::of(a, b)?, request.query, budget)
}
