//! `gguf inspect`: what is in a file.

use std::fmt::Write as _;
use std::io::Write;

use gguf::Metadata;
use gguf_kit::open;
use gguf_kit::summary::Summary;
use gguf_store::{Model, ModelTensor};
use serde_json::{Map as JsonMap, Value as Json, json};

use crate::document;
use crate::failure::Failure;
use crate::listing;

/// Show what is in a GGUF: a summary, its keys, its tensors.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  gguf inspect model.gguf\n  gguf inspect model.gguf --json --tensors"
)]
pub struct Args {
    /// File, directory, shard or far location (https://, hf:org/repo:file, s3://, gs://, az://).
    source: String,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// After the summary only the keys.
    #[arg(long)]
    keys: bool,
    /// After the summary only the tensors.
    #[arg(long)]
    tensors: bool,
    /// Show arrays in full.
    #[arg(long)]
    arrays: bool,
}

/// Arrays up to this length are shown in full.
const SHORT: u64 = 16;

pub fn run(args: &Args) -> Result<(), Failure> {
    let opened = open(&args.source)?;
    let model = opened.model();
    let (keys, tensors) = match (args.keys, args.tensors) {
        (false, false) => (true, true),
        chosen => chosen,
    };
    let longest = if args.arrays { u64::MAX } else { SHORT };
    let summary = Summary::of(model);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.json {
        let mut json = summary_json(&summary, &args.source);
        if keys {
            json["metadata"] = metadata_json(model.metadata(), longest);
        }
        if tensors {
            json["tensors"] = tensors_json(model);
        }
        document::print(&mut out, "inspect/1", json)?;
    } else {
        writeln!(out, "{}", args.source)?;
        out.write_all(summary_text(&summary).as_bytes())?;
        if keys {
            writeln!(out, "\nKeys")?;
            for (key, value) in model.metadata().iter() {
                let shown = match value {
                    gguf::Value::Array(_) if args.arrays => {
                        listing::value_json(value, u64::MAX).to_string()
                    }
                    other => shortened(&other.to_string()),
                };
                writeln!(out, "  {key:<42} {:<8} {shown}", value.value_type())?;
            }
        }
        if tensors {
            writeln!(out, "\nTensors")?;
            for tensor in model.tensors().iter().map(|tensor| &tensor.info) {
                let bytes = tensor.byte_len().map_or("?".into(), listing::bytes);
                writeln!(
                    out,
                    "  {:<42} {:<8} {:<24} {bytes:>10}  at {}",
                    tensor.name, tensor.tensor_type, tensor.shape, tensor.offset
                )?;
            }
        }
    }
    out.flush()?;
    if let Some(bytes) = opened.transferred() {
        eprintln!("{} transferred", listing::bytes(bytes));
    }
    Ok(())
}

/// One line of text, at most so long: templates and licences fill pages.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 100;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}... {} characters", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

fn summary_text(summary: &Summary) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {name:<14} {value}");
        }
    };
    let shown = |text: &Option<String>| text.as_deref().map(shortened);
    let number = |number: Option<u64>| number.map(|n| n.to_string());
    line("name", shown(&summary.name));
    line("architecture", Some(shown(&summary.architecture).unwrap_or("not stated".into())));
    let size = listing::bytes(summary.file_bytes);
    line("size", Some(format!("{size} (GGUF version {})", summary.version)));
    line("files", (summary.files > 1).then(|| summary.files.to_string()));
    line("parameters", Some(listing::count(summary.parameters)));
    line("file type", summary.file_type.map(str::to_owned));
    line("bits/weight", Some(format!("{:.2}", summary.bits_per_weight())));
    line("context", summary.context_length.map(|n| format!("{n} tokens")));
    line("blocks", number(summary.block_count));
    line("width", number(summary.embedding_length));
    let tokenizer = summary.tokenizer.as_ref().map(|model| {
        let pre = summary.pre_tokenizer.as_ref().map_or(String::new(), |pre| format!(" ({pre})"));
        let tokens = summary.tokens.map_or(String::new(), |n| format!(", {n} tokens"));
        format!("{model}{pre}{tokens}")
    });
    line("tokenizer", tokenizer);
    line("tensors", Some(summary.tensors.to_string()));
    for (ty, (n, bytes)) in &summary.types {
        line("", Some(format!("{n:>5} {ty:<8} {:>10}", listing::bytes(*bytes))));
    }
    text
}

fn summary_json(summary: &Summary, file: &str) -> Json {
    let types: JsonMap<_, _> = summary
        .types
        .iter()
        .map(|(ty, (n, bytes))| (ty.to_string(), json!({ "tensors": n, "bytes": bytes })))
        .collect();
    json!({
        "file": file,
        "version": summary.version,
        "files": summary.files,
        "file_bytes": summary.file_bytes,
        "architecture": summary.architecture,
        "name": summary.name,
        "parameters": summary.parameters,
        "file_type": summary.file_type,
        "bits_per_weight": summary.bits_per_weight(),
        "context_length": summary.context_length,
        "block_count": summary.block_count,
        "embedding_length": summary.embedding_length,
        "tokenizer": {
            "model": summary.tokenizer,
            "pre": summary.pre_tokenizer,
            "tokens": summary.tokens,
        },
        "tensor_count": summary.tensors,
        "tensor_types": types,
    })
}

fn metadata_json(metadata: &Metadata, longest: u64) -> Json {
    let entry = |(key, value): (&str, &gguf::Value)| {
        let mut entry = json!({ "type": value.value_type().name() });
        if let Some(array) = value.as_array() {
            entry["element_type"] = array.element_type().name().into();
        }
        entry["value"] = listing::value_json(value, longest);
        (key.to_owned(), entry)
    };
    Json::Object(metadata.iter().map(entry).collect())
}

fn tensors_json(model: &Model) -> Json {
    model
        .tensors()
        .iter()
        .map(|ModelTensor { info: tensor, shard, .. }| {
            json!({
                "name": tensor.name,
                "shape": &tensor.shape[..],
                "type": tensor.tensor_type.name(),
                "bytes": tensor.byte_len(),
                "offset": tensor.offset,
                "shard": shard + 1,
            })
        })
        .collect()
}
