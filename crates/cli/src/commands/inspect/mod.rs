//! `gguf inspect`: shows what a file contains. One module per view.

mod glob;
mod keys;
mod memory;
mod sources;
mod summary;
mod tensors;
mod values;
mod weights;

use std::io::Write;
use std::path::Path;

use gguf_kit::checkpoint::WeightsSummary;
use gguf_kit::open_partial;
use gguf_kit::report::file_card_markdown;
use gguf_kit::summary::Summary;

use crate::commands::each;
use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{listing, terminal};

/// Show what a model file contains.
///
/// Prints a summary, metadata keys, tensors, tensor values, or the memory needed to run the model.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf inspect model.gguf\n  \
                        gguf inspect model.gguf --keys 'tokenizer.*'\n  \
                        gguf inspect model.gguf --values blk.0.attn_q.weight:0..2\n  \
                        gguf inspect model.gguf --memory --context 8192 --kv-type q8_0\n  \
                        gguf inspect model.gguf --sbom > model.cdx.json\n  \
                        gguf inspect a.gguf --all --diffable > a.txt")]
pub struct Args {
    /// Files, directories, shards or remote locations (https://, hf:org/repo:file, s3://, gs://, az://); also
    /// safetensors files and checkpoint directories, as a summary.
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    /// Print JSON, with all keys and tensors unless one of the flags below selects a part. One line per source
    /// if there are several.
    #[arg(long)]
    json: bool,
    /// Show metadata keys, or those that match GLOB: `*` and `?`, or a part of the name.
    #[arg(long, value_name = "GLOB", num_args = 0..=1)]
    keys: Option<Option<String>>,
    /// Show tensors, or those that match GLOB.
    #[arg(long, value_name = "GLOB", num_args = 0..=1)]
    tensors: Option<Option<String>>,
    /// Show the summary, keys and tensors.
    #[arg(long, conflicts_with_all = ["keys", "tensors"])]
    all: bool,
    /// Show arrays and long texts in full.
    #[arg(long)]
    arrays: bool,
    /// Show values of a tensor with statistics and a histogram. ROWS is one row, a range A..B (B excluded), or
    /// absent for all rows, of which the first three are printed.
    #[arg(long, value_name = "TENSOR[:ROWS]")]
    values: Option<values::TensorRows>,
    #[command(flatten)]
    memory: memory::Flags,
    /// Print a model card in Markdown.
    #[arg(long, conflicts_with_all = ["json", "keys", "tensors", "all", "values", "memory"])]
    markdown: bool,
    /// Print a machine-learning bill of materials in CycloneDX 1.6. Hashes local files.
    #[arg(long, conflicts_with_all = ["json", "keys", "tensors", "all", "values", "memory", "markdown", "diffable"])]
    sbom: bool,
    /// Omit file names, file sizes and offsets, so that files with the same content give the same output.
    #[arg(long)]
    diffable: bool,
}

/// Selected parts of the output.
struct View<'a> {
    /// Pattern for keys; `None` hides them.
    keys: Option<&'a str>,
    tensors: Option<&'a str>,
    /// Whether the summary is shown. A selected part is shown alone.
    summary: bool,
}

impl Args {
    fn view<'a>(&'a self, keys: &'a Option<String>, tensors: &'a Option<String>) -> View<'a> {
        let all = self.all || self.json && !self.has_part();
        let pattern = |is_set: bool, pattern: &'a Option<String>| {
            (all || is_set).then_some(pattern.as_deref().unwrap_or("*"))
        };
        View {
            keys: pattern(self.keys.is_some(), keys),
            tensors: pattern(self.tensors.is_some(), tensors),
            summary: self.all || self.json || !self.has_part(),
        }
    }

    /// Whether a flag selects a part of the file.
    fn has_part(&self) -> bool {
        self.keys.is_some() || self.tensors.is_some() || self.values.is_some() || self.memory.is_set
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    // In `--keys m.gguf`, the value is the file.
    let mut sources = args.sources.clone();
    let mut pattern = |value: &Option<Option<String>>| {
        sources::pattern_or_source(value.clone().flatten(), &mut sources)
    };
    let (keys, tensors) = (pattern(&args.keys), pattern(&args.tensors));
    if sources.is_empty() {
        return Err(Failure::Usage(
            "SOURCE is missing: expected a model, as in gguf inspect model.gguf".into(),
        ));
    }
    let view = args.view(&keys, &tensors);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut is_first = true;
    let is_one = sources.len() == 1;
    each(&sources, |source| {
        let mut text = Vec::new();
        inspect(args, &view, source, is_one, &mut text)?;
        if !is_first && !args.json {
            writeln!(out)?;
        }
        is_first = false;
        out.write_all(&text)?;
        Ok(out.flush()?)
    })
}

fn inspect(
    args: &Args,
    view: &View,
    source: &str,
    is_one: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    if let Some(weights) = WeightsSummary::at(Path::new(source))? {
        return match args.json {
            true => {
                let json = weights::to_json(&weights, source);
                Ok(document::print_one(out, "weights/1", json, !is_one)?)
            }
            false => Ok(out.write_all(weights::text(&weights, source).as_bytes())?),
        };
    }
    let (opened, warning) = open_partial(source)?;
    warning.into_iter().for_each(terminal::warning);
    let model = opened.model();
    let source = &*gguf_kit::redact(source);
    let summary = Summary::of(model);
    if args.sbom {
        let progress = Progress::new();
        let bom = gguf_kit::sbom::cyclonedx(&opened, source, &progress)?;
        progress.finish();
        match is_one {
            true => writeln!(out, "{bom:#}")?,
            false => writeln!(out, "{bom}")?,
        }
    } else if args.markdown {
        out.write_all(file_card_markdown(&summary, source).as_bytes())?;
    } else if args.json {
        let mut json = gguf_kit::json::summary(&summary, source, args.diffable);
        if let Some(pattern) = view.keys {
            json["metadata"] = keys::to_json(model.metadata(), pattern, args.arrays)?;
        }
        if let Some(pattern) = view.tensors {
            json["tensors"] = tensors::to_json(model, pattern, args.diffable)?;
        }
        if let Some(rows) = &args.values {
            json["values"] = values::to_json(&rows.read(model)?);
        }
        if args.memory.is_set {
            json["memory"] = gguf_kit::json::memory(&args.memory.of(model)?);
        }
        document::print_one(out, "inspect/2", json, !is_one)?;
    } else {
        // Parts of a single file are shown without its name, as grep does.
        if !args.diffable && (view.summary || !is_one) {
            writeln!(out, "{}\n", terminal::strong(terminal::plain(source)))?;
        }
        let mut parts = Vec::new();
        if view.summary {
            parts.push(summary::text(&summary, args.diffable));
        }
        if let Some(pattern) = view.keys {
            parts.push(keys::text(model.metadata(), pattern, args.arrays)?);
        }
        if let Some(pattern) = view.tensors {
            parts.push(tensors::text(model, pattern, args.diffable)?);
        }
        if let Some(rows) = &args.values {
            parts.push(values::text(&rows.read(model)?));
        }
        if args.memory.is_set {
            parts.push(memory::text(&args.memory.of(model)?));
        }
        out.write_all(parts.join("\n").as_bytes())?;
    }
    if let Some(bytes) = opened.transferred() {
        eprintln!("{} transferred", listing::bytes(bytes));
    }
    Ok(())
}
