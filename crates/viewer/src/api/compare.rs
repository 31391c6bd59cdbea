//! Two models beside each other.

use std::collections::HashMap;
use std::sync::Arc;

use gguf_compare::diff_keys;
use gguf_kit::json::{figures, key_change};
use gguf_kit::values::{Differences, error_figures, statistics};
use gguf_store::ModelTensor;
use serde_json::{Value as Json, json};

use super::tensors::{LISTED, statistics_json, tile_of_numbers};
use crate::answer::{Answer, Answered, Failure};
use crate::ask::Ask;
use crate::shown::Shown;
use crate::work::Waiting;

/// What is asked of two models.
pub struct Question<'a> {
    pub a: &'a Arc<Shown>,
    pub b: &'a Arc<Shown>,
    pub ask: &'a Ask,
    pub waiting: &'a Waiting,
}

/// `GET keys`.
pub fn keys(question: &Question) -> Answered {
    let (a, b) = (question.a.model()?.metadata(), question.b.model()?.metadata());
    let changes = diff_keys(a, b);
    let same = a.iter().filter(|(key, value)| b.get(key) == Some(*value)).count();
    let keys = changes.iter().map(key_change).collect::<Json>();
    Ok(Answer::Json(json!({ "keys": keys, "same": same })))
}

/// `GET tensors`.
pub fn tensors(question: &Question) -> Answered {
    let (a, b) = (question.a.model()?.tensors(), question.b.model()?.tensors());
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
        let (of_a, of_b) = (in_a.get(name), in_b.get(name));
        let change = match (of_a, of_b) {
            (Some((_, a)), Some((_, b))) if a.info.shape == b.info.shape => "data",
            (Some(_), Some(_)) => "reshaped",
            (Some(_), None) => "removed",
            (None, _) => "added",
        };
        let shown = crate::answer::cut(name.as_bytes(), super::keys::SHOWN);
        json!({ "name": shown, "change": change, "a": side(of_a), "b": side(of_b) })
    };
    let names = a.iter().map(|tensor| &*tensor.info.name);
    let only_b = b.iter().map(|tensor| &*tensor.info.name).filter(|name| !in_a.contains_key(name));
    let page = question.ask.page_of(LISTED, LISTED)?;
    let (listed, total) = page.of(names.chain(only_b));
    let listed = listed.into_iter().map(entry).collect::<Json>();
    Ok(Answer::Json(json!({ "total": total, "offset": page.offset, "tensors": listed })))
}

/// The tensor that is asked for, on both sides: by its name, or by its number in the first model.
fn both<'q>(question: &Question<'q>) -> Result<(&'q ModelTensor, &'q ModelTensor), Failure> {
    let (_, a) = question.a.tensor(&question.ask.named()?)?;
    let (_, b) = question.b.tensor(&crate::ask::Named::Name(a.info.name.clone()))?;
    Ok((a, b))
}

/// `GET tensor`.
pub fn tensor(question: &Question) -> Answered {
    let (a, b) = both(question)?;
    let differences = Differences::of(a, b)?;
    let budget = match question.ask.or("exact", false)? {
        true => u64::MAX,
        false => question.a.budget().statistics.min(question.b.budget().statistics),
    };
    let (errors, exact) = error_figures(&differences, budget, question.waiting)?;
    let found = statistics(&differences, budget, question.waiting)?;
    let mut json = statistics_json(&found);
    if let (Json::Object(json), Json::Object(errors)) = (&mut json, figures(&errors)) {
        json.extend(errors);
        json.insert("elements".into(), found.count.into());
    }
    json["exact"] = (exact && found.exact).into();
    json["same"] = (errors.squared_error == 0.0 && exact).into();
    Ok(Answer::Json(json))
}

/// `GET tile`.
pub fn tile(question: &Question) -> Answered {
    let (a, b) = both(question)?;
    let budget = question.a.budget().tile.min(question.b.budget().tile);
    tile_of_numbers(&Differences::of(a, b)?, question.ask, budget)
}
