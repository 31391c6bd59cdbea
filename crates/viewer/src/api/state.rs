//! State of the files and network traffic.

use std::time::UNIX_EPOCH;

use gguf_kit::HeldFile;
use gguf_store::FileState;
use serde_json::{Value as Json, json};

use super::Request;
use super::models::entry;
use crate::response::{ApiResult, Response};

/// `GET state`.
pub fn state(request: &Request) -> ApiResult {
    let files = request.model.files.files();
    let remote = request.model.files.is_remote();
    let file = |file: &HeldFile| {
        let now = file.name().metadata().ok().filter(|_| !remote);
        let modified =
            now.as_ref().and_then(|now| now.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        json!({
            "name": file.name().display().to_string(),
            "bytes": now.map(|now| now.len()),
            "modified": modified.map(|since| since.as_secs_f64()),
            "state": match file.state() {
                FileState::Unchanged => "same",
                FileState::Changed => "changed",
                FileState::Deleted => "gone",
            },
        })
    };
    let changed = files.iter().any(|file| file.state() != FileState::Unchanged);
    let files = files.iter().map(file).collect::<Json>();
    Ok(Response::Json(json!({ "changed": changed, "files": files })))
}

/// `GET traffic`.
pub fn traffic(request: &Request) -> ApiResult {
    let traffic = request.model.files.traffic();
    let cache = request.session.cache.as_ref().filter(|_| request.model.files.is_remote());
    Ok(Response::Json(json!({
        "remote": request.model.files.is_remote(),
        "fetched_bytes": traffic.bytes,
        "requests": traffic.requests,
        "waiting_seconds": traffic.waiting.map(|waiting| waiting.as_secs_f64()),
        "retry": traffic.failed_attempt.map(|failed| json!({
            "failures": failed.failures,
            "attempts": failed.attempts,
            "reason": failed.reason,
        })),
        "cache": cache.map(|cache| {
            let usage = cache.usage();
            json!({
                "memory_bytes": usage.memory_bytes,
                "disk_bytes": usage.disk_bytes,
                "disk_limit": usage.disk_limit,
                "directory": usage.directory.map(|directory| directory.display().to_string()),
            })
        }),
    })))
}

/// `POST reload`.
pub fn reload(request: Request, _: Json) -> ApiResult {
    let model = request.session.models.reopen(request.id)?;
    Ok(Response::Json(entry(request.session, request.id, &model)))
}
