//! `gguf inspect`: what is in a file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use gguf::{Metadata, TensorType, ValueType};
use gguf_quantize::recipe::Mix;
use gguf_store::{Model, ModelTensor};
use serde_json::{Map as JsonMap, Value as Json, json};

use crate::failure::Failure;
use crate::listing;
use crate::opened::Opened;

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
    let opened = Opened::open(&args.source)?;
    let model = opened.model();
    let (keys, tensors) = match (args.keys, args.tensors) {
        (false, false) => (true, true),
        chosen => chosen,
    };
    let longest = if args.arrays { u64::MAX } else { SHORT };
    let summary = Summary::of(model);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.json {
        let mut json = summary.json(&args.source);
        if keys {
            json["metadata"] = metadata_json(model.metadata(), longest);
        }
        if tensors {
            json["tensors"] = tensors_json(model);
        }
        writeln!(out, "{json:#}")?;
    } else {
        writeln!(out, "{}", args.source)?;
        out.write_all(summary.text().as_bytes())?;
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

/// What a person wants to know first.
struct Summary<'m> {
    metadata: &'m Metadata,
    version: u32,
    files: usize,
    file_bytes: u64,
    parameters: u64,
    data_bytes: u64,
    n_tensors: usize,
    /// Per type: tensors and bytes.
    types: BTreeMap<TensorType, (u64, u64)>,
}

impl<'m> Summary<'m> {
    fn of(model: &'m Model) -> Self {
        let mut summary = Self {
            metadata: model.metadata(),
            version: model.parts().first().map_or(0, |part| part.header.version()),
            files: model.parts().len(),
            file_bytes: model.byte_len(),
            parameters: 0,
            data_bytes: 0,
            n_tensors: model.tensors().len(),
            types: BTreeMap::new(),
        };
        for tensor in model.tensors().iter().map(|tensor| &tensor.info) {
            let bytes = tensor.byte_len().unwrap_or(0);
            let of_type = summary.types.entry(tensor.tensor_type).or_default();
            of_type.0 += 1;
            of_type.1 += bytes;
            summary.data_bytes += bytes;
            let elements = tensor.shape.elements().unwrap_or(0);
            summary.parameters = summary.parameters.saturating_add(elements);
        }
        summary
    }

    fn of_architecture(&self, key: &str) -> Option<u64> {
        self.metadata.u64(&format!("{}.{key}", self.metadata.architecture()?))
    }

    fn file_type(&self) -> Option<Mix> {
        let number = self.metadata.u64("general.file_type")?;
        Mix::from_number(number.try_into().ok()?)
    }

    fn bits_per_weight(&self) -> f64 {
        listing::bits_per_weight(self.data_bytes, self.parameters)
    }

    fn tokens(&self) -> Option<u64> {
        let tokens = self.metadata.array("tokenizer.ggml.tokens")?;
        (tokens.element_type() == ValueType::String).then_some(tokens.len())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                // Writing to a string does not fail.
                let _ = writeln!(text, "  {name:<14} {value}");
            }
        };
        let text_of = |key: &str| self.metadata.str(key).map(shortened);
        line("name", text_of("general.name"));
        line("architecture", Some(text_of("general.architecture").unwrap_or("not stated".into())));
        line(
            "size",
            Some(format!("{} (GGUF version {})", listing::bytes(self.file_bytes), self.version)),
        );
        line("files", (self.files > 1).then(|| self.files.to_string()));
        line("parameters", Some(listing::count(self.parameters)));
        line("file type", self.file_type().map(|mix| mix.name().to_owned()));
        line("bits/weight", Some(format!("{:.2}", self.bits_per_weight())));
        line("context", self.of_architecture("context_length").map(|n| format!("{n} tokens")));
        line("blocks", self.of_architecture("block_count").map(|n| n.to_string()));
        line("width", self.of_architecture("embedding_length").map(|n| n.to_string()));
        line(
            "tokenizer",
            self.metadata.str("tokenizer.ggml.model").map(|model| {
                let pre = self.metadata.str("tokenizer.ggml.pre");
                let pre = pre.map_or(String::new(), |pre| format!(" ({pre})"));
                let tokens = self.tokens().map_or(String::new(), |n| format!(", {n} tokens"));
                format!("{model}{pre}{tokens}")
            }),
        );
        line("tensors", Some(self.n_tensors.to_string()));
        for (ty, (n, bytes)) in &self.types {
            line("", Some(format!("{n:>5} {ty:<8} {:>10}", listing::bytes(*bytes))));
        }
        text
    }

    fn json(&self, file: &str) -> Json {
        let types: JsonMap<_, _> = self
            .types
            .iter()
            .map(|(ty, (n, bytes))| (ty.to_string(), json!({ "tensors": n, "bytes": bytes })))
            .collect();
        json!({
            "file": file,
            "version": self.version,
            "files": self.files,
            "file_bytes": self.file_bytes,
            "architecture": self.metadata.architecture(),
            "name": self.metadata.str("general.name"),
            "parameters": self.parameters,
            "file_type": self.file_type().map(Mix::name),
            "bits_per_weight": self.bits_per_weight(),
            "context_length": self.of_architecture("context_length"),
            "block_count": self.of_architecture("block_count"),
            "embedding_length": self.of_architecture("embedding_length"),
            "tokenizer": {
                "model": self.metadata.str("tokenizer.ggml.model"),
                "pre": self.metadata.str("tokenizer.ggml.pre"),
                "tokens": self.tokens(),
            },
            "tensor_count": self.n_tensors,
            "tensor_types": types,
        })
    }
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
                "file": shard,
            })
        })
        .collect()
}
