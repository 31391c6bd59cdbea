//! Tensors of a model.

use gguf_store::{Model, ModelTensor};
use serde_json::{Value as Json, json};

use super::glob::{Glob, no_match};
use crate::failure::Failure;
use crate::{listing, terminal};

fn matching<'m>(model: &'m Model, pattern: &str) -> Result<Vec<&'m ModelTensor>, Failure> {
    let glob = Glob::new(pattern)?;
    let tensors = model.tensors().iter().filter(|tensor| glob.matches(&tensor.info.name));
    let tensors: Vec<_> = tensors.collect();
    match tensors.is_empty() && pattern != "*" {
        true => Err(no_match("tensor", pattern)),
        false => Ok(tensors),
    }
}

pub fn text(model: &Model, pattern: &str, diffable: bool) -> Result<String, Failure> {
    let tensors = matching(model, pattern)?;
    let names = tensors.iter().map(|tensor| console::measure_text_width(&tensor.info.name));
    let widest = names.max().unwrap_or(0).min(48);
    let lines = tensors.iter().map(|ModelTensor { info: tensor, shard, .. }| {
        let bytes = tensor.byte_len().map_or("?".into(), listing::bytes);
        let (name, shape) = (terminal::plain(&tensor.name), tensor.shape.to_string());
        let line = format!("  {name:<widest$}  {:<8} {shape:<16} {bytes:>9}", tensor.tensor_type);
        let place = match (diffable, model.parts().len()) {
            (true, _) => String::new(),
            (false, 1) => format!("  at {}", tensor.offset),
            (false, _) => format!("  at {} of file {}", tensor.offset, shard + 1),
        };
        terminal::fit(&(line + &terminal::faint(place)))
    });
    let lines: Vec<_> = lines.collect();
    let count = listing::plural(tensors.len(), "tensor");
    Ok(format!("{}\n{}\n", terminal::strong(count), lines.join("\n")))
}

pub fn to_json(model: &Model, pattern: &str, diffable: bool) -> Result<Json, Failure> {
    let tensors = matching(model, pattern)?.into_iter().map(|tensor| {
        let info = &tensor.info;
        let mut json = json!({
            "name": info.name,
            "shape": &info.shape[..],
            "type": info.tensor_type.name(),
            "bytes": info.byte_len(),
        });
        if !diffable {
            json["offset"] = info.offset.into();
            json["shard"] = (tensor.shard + 1).into();
        }
        json
    });
    Ok(tensors.collect())
}
