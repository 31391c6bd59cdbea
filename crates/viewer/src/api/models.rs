//! Which models there are.

use std::sync::Arc;

use axum::extract::State;
use gguf_kit::summary::Summary;
use serde_json::{Value as Json, json};

use crate::Session;
use crate::answer::{Answer, Answered, Failure};
use crate::shown::Shown;
use crate::work::Waiting;

/// All of them.
pub async fn models(State(session): State<Arc<Session>>) -> Answered {
    let working = session.clone();
    let work = move |_: &Waiting| {
        let all = (0..working.models.len()).map(|id| {
            let model = working.models.model(id)?;
            Ok(entry(&working, id, &model))
        });
        let all = all.collect::<Result<Json, Failure>>()?;
        Ok(Answer::Json(json!({ "api": 1, "version": working.version, "models": all })))
    };
    session.work.run(work).await
}

/// One of them.
pub fn entry(session: &Session, id: usize, model: &Shown) -> Json {
    let files = model.files.files();
    let file = |file: &gguf_kit::HeldFile| json!({ "name": file.name().display().to_string(), "bytes": file.source().byte_len() });
    let far = model.files.is_far();
    let read = model.model().ok();
    let name = read.and_then(|read| Summary::of(read).name);
    json!({
        "id": id,
        "name": name.map(|name| crate::answer::cut(name.as_bytes(), 200)),
        "source": model.source,
        "far": far,
        "bytes": files.iter().map(|file| file.source().byte_len()).sum::<u64>(),
        "tensor_count": read.map(|read| read.tensors().len()),
        "files": files.iter().map(file).collect::<Json>(),
        "readable": read.is_some(),
        "error": model.fault(),
        "editable": !far && read.is_some() && files.len() == 1,
        "original": session.original.filter(|original| id != *original),
    })
}
