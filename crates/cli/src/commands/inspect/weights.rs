//! Summary of safetensors files and checkpoint directories.

use gguf_kit::checkpoint::WeightsSummary;
use serde_json::{Map as JsonMap, Value as Json, json};

use crate::{listing, terminal};

pub fn text(weights: &WeightsSummary, source: &str) -> String {
    let name = terminal::plain(source);
    let mut text = format!("{}\n\n", terminal::strong(&name));
    let class = weights.class.as_deref().map(|class| format!(", {}", terminal::plain(class)));
    let what = if weights.class.is_some() { "checkpoint" } else { "weights" };
    text += &format!("  not a GGUF     {what}{}\n", class.unwrap_or_default());
    let (parameters, size) = (listing::count(weights.parameters), listing::bytes(weights.bytes()));
    let tensors = listing::plural(weights.tensors as usize, "tensor");
    let files = listing::plural(weights.files, "file");
    text += &format!(
        "  parameters     {parameters} in {tensors}\n  size           {size} in {files}\n"
    );
    let types = weights.types.iter().map(|(ty, (tensors, bytes))| {
        let tensors = listing::plural(*tensors as usize, "tensor");
        format!("{ty}: {tensors}, {}", listing::bytes(*bytes))
    });
    for (number, line) in types.enumerate() {
        text += &format!("  {:<14} {line}\n", if number == 0 { "types" } else { "" });
    }
    let directory = match std::path::Path::new(source) {
        path if path.is_dir() => name,
        path => match path.parent().map(|parent| parent.display().to_string()) {
            Some(parent) if !parent.is_empty() => terminal::plain(&parent),
            _ => ".".into(),
        },
    };
    text + &format!("\nConvert it to GGUF: gguf convert {directory}\n")
}

pub fn to_json(weights: &WeightsSummary, source: &str) -> Json {
    let types: JsonMap<_, _> = weights
        .types
        .iter()
        .map(|(ty, (n, bytes))| (ty.to_string(), json!({ "tensors": n, "bytes": bytes })))
        .collect();
    json!({
        "file": source,
        "kind": "checkpoint",
        "class": weights.class,
        "files": weights.files,
        "parameters": weights.parameters,
        "data_bytes": weights.bytes(),
        "tensor_count": weights.tensors,
        "tensor_types": types,
    })
}
