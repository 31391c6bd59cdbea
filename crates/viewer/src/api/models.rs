//! The list of models.

use std::sync::Arc;

use axum::extract::State;
use gguf_kit::summary::Summary;
use serde_json::{Value as Json, json};

use crate::Session;
use crate::jobs::{CancelFlag, JobKind};
use crate::models::OpenModel;
use crate::response::{ApiError, ApiResult, Response};

/// `GET models`.
pub async fn models(State(session): State<Arc<Session>>) -> ApiResult {
    let server = session.clone();
    let job = move |_: &CancelFlag| {
        let all = (0..server.models.len()).map(|id| {
            let model = server.models.model(id)?;
            Ok(entry(&server, id, &model))
        });
        let all = all.collect::<Result<Json, ApiError>>()?;
        Ok(Response::Json(json!({ "api": 1, "version": server.version, "models": all })))
    };
    session.jobs.run(JobKind::Other, job).await
}

/// Returns a model as an entry of the list.
pub fn entry(session: &Session, id: usize, model: &OpenModel) -> Json {
    let files = model.files.files();
    let file = |file: &gguf_kit::HeldFile| json!({ "name": file.name().display().to_string(), "bytes": file.source().byte_len() });
    let remote = model.files.is_remote();
    let parsed = model.model().ok();
    let name = parsed.and_then(|parsed| Summary::of(parsed).name);
    json!({
        "id": id,
        "name": name.map(|name| crate::response::truncated(name.as_bytes(), 200)),
        "source": gguf_kit::redact(&model.source),
        "remote": remote,
        "bytes": files.iter().map(|file| file.source().byte_len()).sum::<u64>(),
        "tensor_count": parsed.map(|parsed| parsed.tensors().len()),
        "files": files.iter().map(file).collect::<Json>(),
        "readable": parsed.is_some(),
        "damaged": model.is_damaged(),
        "truncated": model.truncation().is_some(),
        "header_complete": model.header_complete(),
        "error": model.error(),
        "editable": !remote && parsed.is_some() && !model.is_damaged() && files.len() == 1,
        "original": session.original.filter(|original| id != *original),
    })
}
