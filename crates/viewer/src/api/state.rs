//! Whether files are what they were, and what reading them has cost.

use std::time::UNIX_EPOCH;

use gguf_kit::HeldFile;
use gguf_store::FileState;
use serde_json::{Value as Json, json};

use super::Question;
use super::models::entry;
use crate::answer::{Answer, Answered};

/// `GET state`.
pub fn state(question: &Question) -> Answered {
    let files = question.model.files.files();
    let far = question.model.files.is_far();
    let file = |file: &HeldFile| {
        let now = file.name().metadata().ok().filter(|_| !far);
        let modified =
            now.as_ref().and_then(|now| now.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        json!({
            "name": file.name().display().to_string(),
            "bytes": now.map(|now| now.len()),
            "modified": modified.map(|since| since.as_secs_f64()),
            "state": match file.state() {
                FileState::Same => "same",
                FileState::Changed => "changed",
                FileState::Gone => "gone",
            },
        })
    };
    let changed = files.iter().any(|file| file.state() != FileState::Same);
    let files = files.iter().map(file).collect::<Json>();
    Ok(Answer::Json(json!({ "changed": changed, "files": files })))
}

/// `GET traffic`.
pub fn traffic(question: &Question) -> Answered {
    let traffic = question.model.files.traffic();
    let cache = question.session.cache.as_ref().filter(|_| question.model.files.is_far());
    Ok(Answer::Json(json!({
        "far": question.model.files.is_far(),
        "fetched_bytes": traffic.bytes,
        "requests": traffic.requests,
        "cache": cache.map(|cache| {
            let kept = cache.kept();
            json!({
                "memory_bytes": kept.memory_bytes,
                "disk_bytes": kept.disk_bytes,
                "disk_limit": kept.disk_limit,
                "directory": kept.directory.map(|directory| directory.display().to_string()),
            })
        }),
    })))
}

/// `POST reload`.
pub fn reload(question: Question, _: Json) -> Answered {
    let model = question.session.models.reopen(question.id)?;
    Ok(Answer::Json(entry(question.session, question.id, &model)))
}
