//! What a model is, what is wrong with it, what it takes.

use std::collections::{HashMap, HashSet};

use gguf::Finding;
use gguf_check::codes;
use gguf_compare::scan;
use gguf_kit::json;
use gguf_kit::memory::{Options, Report};
use gguf_kit::summary::Summary;
use gguf_runtime::CacheType;
use gguf_store::Model;
use serde_json::{Value as Json, json};

use super::Question;
use crate::answer::{Answer, Answered, Failure};
use crate::shown::Shown;

/// `GET summary`.
pub fn summary(question: &Question) -> Answered {
    let model = &question.model;
    let facts = json::summary(&Summary::of(model.model()?), &model.source, false);
    Ok(Answer::Json(json::with_schema("inspect/1", facts)))
}

/// `GET findings`.
pub fn findings(question: &Question) -> Answered {
    let model = &question.model;
    let headers = match model.findings.get() {
        Some(known) => known.clone(),
        None => {
            let found = model.files.findings(&question.session.renderer)?;
            let found = findings_json(model, &found);
            model.findings.get_or_init(|| found).clone()
        }
    };
    let mut all = headers;
    if question.ask.or("data", false)? {
        let of_data = scan(model.model()?, question.waiting)?;
        if let (Json::Array(all), Json::Array(more)) = (&mut all, findings_json(model, &of_data)) {
            all.extend(more);
        }
    }
    let document = json!({ "file": model.source, "findings": all });
    Ok(Answer::Json(json::with_schema("check/1", document)))
}

/// Where those that are wanted stand in a list, each the first of its name.
fn places<'a>(
    all: impl Iterator<Item = &'a str>,
    wanted: &HashSet<&str>,
) -> HashMap<&'a str, usize> {
    let mut places = HashMap::new();
    for (n, name) in all.enumerate().filter(|(_, name)| wanted.contains(name)) {
        places.entry(name).or_insert(n);
    }
    places
}

/// Findings with what leads to their places.
pub fn findings_json(model: &Shown, findings: &[Finding]) -> Json {
    let read = model.model().ok();
    // What is found in files of millions of names is about a few.
    let wanted_keys: HashSet<&str> = findings.iter().filter_map(|one| one.key.as_deref()).collect();
    let keys = read.into_iter().flat_map(|read| read.metadata().iter().map(|(key, _)| key));
    let names: HashSet<&str> = findings.iter().filter_map(|one| one.tensor.as_deref()).collect();
    let tensors = read.into_iter().flat_map(Model::tensors).map(|tensor| &*tensor.info.name);
    let (keys, tensors) = (places(keys, &wanted_keys), places(tensors, &names));
    let finding = |finding: &Finding| {
        let mut json = json::finding(finding);
        let code = codes::code(finding.code);
        json["meaning"] = code.map(|code| code.meaning).into();
        json["advice"] = code.map(|code| code.advice).into();
        json["key_n"] = finding.key.as_deref().and_then(|key| keys.get(key)).copied().into();
        let tensor_n = finding.tensor.as_deref().and_then(|name| tensors.get(name)).copied();
        json["tensor_n"] = tensor_n.into();
        // Of several files, messages name theirs.
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
pub fn memory(question: &Question) -> Answered {
    let ask = question.ask;
    let cache_type = match ask.text("kv_type").unwrap_or("f16") {
        "f32" => CacheType::F32,
        "f16" => CacheType::F16,
        "q8_0" => CacheType::Q8_0,
        _ => return Err(Failure::request("`kv_type` is f32, f16 or q8_0")),
    };
    let above_0 = |name: &str, number: Option<u64>| match number {
        Some(0) => Err(Failure::request(format!("`{name}` is at least 1"))),
        number => Ok(number),
    };
    let options = Options {
        context: above_0("context", ask.parsed("context")?)?,
        cache_type,
        batch: above_0("batch", ask.parsed("batch")?)?.unwrap_or(512),
        ..Options::default()
    };
    let report = Report::of(question.model.model()?, &options)?;
    Ok(Answer::Json(json::memory(&report)))
}
