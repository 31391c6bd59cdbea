//! Summary, findings and memory estimate.

use std::collections::{HashMap, HashSet};

use gguf::Finding;
use gguf_check::codes;
use gguf_inspect::scan;
use gguf_kit::json;
use gguf_kit::memory::{LayerCache, LayerMemory, MemoryOptions, estimate};
use gguf_kit::report::NamedFiles;
use gguf_kit::summary::Summary;
use gguf_runtime::CacheType;
use gguf_store::Model;
use serde_json::{Value as Json, json};

use super::Request;
use crate::models::OpenModel;
use crate::response::{ApiError, ApiResult, Response};

/// `GET summary`.
pub fn summary(request: &Request) -> ApiResult {
    let model = &request.model;
    let facts = json::summary(&Summary::of(model.model()?), &model.source, false);
    Ok(Response::Json(json::with_schema("inspect/2", facts)))
}

/// `GET findings`.
pub fn findings(request: &Request) -> ApiResult {
    let model = &request.model;
    let headers = match model.findings.get() {
        Some(known) => known.clone(),
        None => {
            let renderer = &request.session.renderer;
            let mut found = model.files.findings(renderer)?;
            found.extend(model.files.scan(renderer)?);
            let found = findings_json(model, &found);
            model.findings.get_or_init(|| found).clone()
        }
    };
    let mut all = headers;
    if request.query.parsed_or("data", false)? {
        let data_findings = scan(model.model()?, request.cancel)?;
        if let (Json::Array(all), Json::Array(more)) =
            (&mut all, findings_json(model, &data_findings))
        {
            all.extend(more);
        }
    }
    let document = json!({ "file": model.source, "findings": all });
    Ok(Response::Json(json::with_schema("check/2", document)))
}

/// Returns the index of the first entry of each wanted name.
fn first_indices<'a>(
    all: impl Iterator<Item = &'a str>,
    wanted: &HashSet<&str>,
) -> HashMap<&'a str, usize> {
    let mut indices = HashMap::new();
    for (n, name) in all.enumerate().filter(|(_, name)| wanted.contains(name)) {
        indices.entry(name).or_insert(n);
    }
    indices
}

/// Returns findings with the indices of their keys, tensors and files.
pub fn findings_json(model: &OpenModel, findings: &[Finding]) -> Json {
    let parsed = model.model().ok();
    // Look up only the names in the findings: a file may have millions of names.
    let wanted_keys: HashSet<&str> =
        findings.iter().filter_map(|finding| finding.key.as_deref()).collect();
    let keys = parsed.into_iter().flat_map(|parsed| parsed.metadata().iter().map(|(key, _)| key));
    let wanted_tensors: HashSet<&str> =
        findings.iter().filter_map(|finding| finding.tensor.as_deref()).collect();
    let tensors = parsed.into_iter().flat_map(Model::tensors).map(|tensor| &*tensor.info.name);
    let (keys, tensors) =
        (first_indices(keys, &wanted_keys), first_indices(tensors, &wanted_tensors));
    let finding = |finding: &Finding| {
        let mut json = json::finding(finding);
        let code = codes::code(finding.code);
        json["meaning"] = code.map(|code| code.meaning).into();
        json["advice"] = code.map(|code| code.advice).into();
        json["key_n"] = finding.key.as_deref().and_then(|key| keys.get(key)).copied().into();
        let tensor_n = finding.tensor.as_deref().and_then(|name| tensors.get(name)).copied();
        json["tensor_n"] = tensor_n.into();
        // For a split model, messages begin with the name of the file.
        let mut files = model.files.files().iter();
        json["file_n"] = match files.len() {
            1 => 0.into(),
            _ => files
                .position(|file| finding.message.starts_with(&*file.name().to_string_lossy()))
                .into(),
        };
        json
    };
    findings.iter().map(finding).collect()
}

/// `GET memory`.
pub fn memory(request: &Request) -> ApiResult {
    let query = request.query;
    let name = query.text("kv_type").unwrap_or("f16");
    let cache_type = CacheType::from_name(name).ok_or_else(|| {
        let names = CacheType::ALL.map(CacheType::name).join(", ");
        ApiError::bad_request(format!("expected one of {names} as `kv_type`"))
    })?;
    let positive = |name: &str, number: Option<u64>| match number {
        Some(0) => Err(ApiError::bad_request(format!("`{name}` must be at least 1"))),
        number => Ok(number),
    };
    let options = MemoryOptions {
        context: positive("context", query.parsed("context")?)?,
        cache_type,
        batch: positive("batch", query.parsed("batch")?)?.unwrap_or(512),
        ..MemoryOptions::default()
    };
    let report = estimate(request.model.model()?, &options)?;
    Ok(Response::Json(json::memory(&report)))
}

/// `GET layers`.
pub fn layers(request: &Request) -> ApiResult {
    let model = request.model.model()?;
    let cache = |cache: &LayerCache| {
        json!({
            "key_width": cache.key_width,
            "value_width": cache.value_width,
            "block": cache.block,
            "window": cache.window,
        })
    };
    let layer = |layer: &LayerMemory| {
        json!({
            "layer": layer.layer,
            "weights": layer.weights,
            "state": layer.state,
            "caches": layer.caches.iter().map(cache).collect::<Json>(),
        })
    };
    let layers = gguf_kit::memory::layers(model)?;
    Ok(Response::Json(json!({ "layers": layers.iter().map(layer).collect::<Json>() })))
}

/// `GET report`.
pub fn report(request: &Request) -> ApiResult {
    let (session, model) = (request.session, &request.model);
    let version = format!("gguf {}", session.version);
    let original = session.original.filter(|original| request.id != *original);
    let original = original.map(|original| session.models.model(original)).transpose()?;
    let page = gguf_kit::report::html(
        &[NamedFiles { source: &model.source, files: &model.files }],
        original.as_ref().map(|of| NamedFiles { source: &of.source, files: &of.files }),
        &session.renderer,
        &version,
        request.cancel,
    )?;
    let headers = vec![("content-disposition", "attachment; filename=report.html".to_owned())];
    Ok(Response::Bytes("text/html; charset=utf-8", page.into_bytes(), headers))
}
