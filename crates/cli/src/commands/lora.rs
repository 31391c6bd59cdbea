//! `gguf lora`: checks, merges and extracts LoRA adapters.

use std::io::Write;
use std::path::PathBuf;

use gguf_convert::lora::{Adapter, extract, merge};
use gguf_kit::open;
use gguf_quantize::recipe::Target;
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::outtype::Outtype;
use crate::progress::Progress;
use crate::{commands, terminal};

/// Check, merge or extract LoRA adapters.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf lora check base.gguf adapter.gguf\n  \
    gguf lora merge base-f16.gguf adapter.gguf -o merged-q4.gguf --outtype q4_k_m\n  \
    gguf lora extract base-f16.gguf tuned-f16.gguf --rank 32 -o adapter.gguf\n\n\
    `gguf convert DIR --base MODEL_DIR` converts an adapter in Hugging Face format to GGUF.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Check(CheckArgs),
    Merge(MergeArgs),
    Extract(ExtractArgs),
}

/// Check whether an adapter matches a model.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf lora check base.gguf adapter.gguf")]
struct CheckArgs {
    /// Base model.
    base: String,
    /// Adapter.
    adapter: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Merge adapters into a model.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf lora merge base-f16.gguf adapter.gguf -o merged-q4.gguf --outtype q4_k_m\n  \
    gguf lora merge base-f16.gguf one.gguf two.gguf=0.5 -o merged.gguf")]
struct MergeArgs {
    /// Base model, preferably F16 or F32.
    base: String,
    /// Adapter, with an optional scale.
    #[arg(required = true, value_name = "ADAPTER[=SCALE]", value_parser = parse_scaled)]
    adapters: Vec<(String, f32)>,
    /// Output file.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Output type: a quantization type such as q4_k_m, or copy for the types of the base model.
    #[arg(long, default_value = "copy", value_name = "TYPE")]
    outtype: Target,
    /// Allow requantizing tensors that are already quantized.
    #[arg(long)]
    allow_requantize: bool,
    /// Print the written file as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

/// Extract a LoRA adapter from a base model and a fine-tuned model.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    gguf lora extract base-f16.gguf tuned-f16.gguf --rank 32 -o adapter.gguf")]
struct ExtractArgs {
    /// Base model.
    base: String,
    /// Fine-tuned model.
    tuned: String,
    /// Rank of the adapter. A higher rank approximates better.
    #[arg(long, default_value = "32", value_parser = clap::value_parser!(u32).range(1..=4096))]
    rank: u32,
    /// Output file.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Type of the adapter's matrices: f32, f16 or bf16.
    #[arg(long, default_value = "f32", value_name = "TYPE")]
    outtype: Outtype,
    /// Print the explained share of each difference as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

fn parse_scaled(text: &str) -> Result<(String, f32), String> {
    match text.rsplit_once('=') {
        None => Ok((text.to_owned(), 1.0)),
        Some((path, scale)) => match scale.parse::<f32>() {
            Ok(scale) if scale.is_finite() => Ok((path.to_owned(), scale)),
            _ => Err(format!("`{scale}` is not a scale; expected a number, as in ADAPTER=0.5")),
        },
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Check(args) => check(args),
        Command::Merge(args) => merge(args),
        Command::Extract(args) => extract(args),
    }
}

fn check(args: &CheckArgs) -> Result<(), Failure> {
    let (base, adapter) = (open(&args.base)?, open(&args.adapter)?);
    let (base, adapter) = (base.model(), adapter.model());
    let adapter = Adapter::read(adapter)?;
    let mismatches = adapter.misfits(base);
    let ranks = adapter.pairs.iter().filter_map(|(name, pair)| pair.dims(name));
    let rank = ranks.map(|dims| dims.rank).max().unwrap_or(0);
    let mut out = std::io::stdout().lock();
    if args.json {
        let report = json!({
            "compatible": mismatches.is_empty(),
            "mismatches": mismatches,
            "matrices": adapter.pairs.len(),
            "rank": rank,
            "alpha": adapter.alpha,
            "base_model": adapter.metadata.str("general.base_model.0.name"),
        });
        document::print(&mut out, "lora-check/2", report)?;
    } else {
        let matrices = adapter.pairs.len();
        writeln!(out, "adapts {matrices} matrices, rank {rank}, alpha {}", adapter.alpha)?;
        for mismatch in &mismatches {
            writeln!(out, "mismatch: {mismatch}")?;
        }
        if mismatches.is_empty() {
            writeln!(out, "the adapter matches the model")?;
        }
    }
    if mismatches.is_empty() { Ok(()) } else { Err(Failure::Findings) }
}

fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let opened_base = open(&args.base)?;
    let base = opened_base.model();
    let opened = args
        .adapters
        .iter()
        .map(|(path, scale)| Ok((open(path)?, *scale)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let adapters = opened
        .iter()
        .map(|(opened, scale)| Ok((Adapter::read(opened.model())?, *scale)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let merge = merge::Merge::new(base, &adapters)?;
    let options = gguf_quantize::QuantizeOptions {
        allow_requantize: args.allow_requantize,
        ..Default::default()
    };
    let planned = merge.plan(args.outtype, &options)?;
    terminal::notes(&planned.notes);
    let adapters = opened.iter().flat_map(|(adapter, _)| adapter.files());
    let overwrite = args.force.protecting(opened_base.files().chain(adapters));
    commands::write_and_report("lora-merge/2", &planned.job, &args.output, &overwrite, args.json)
}

fn extract(args: &ExtractArgs) -> Result<(), Failure> {
    let matrices = match args.outtype.target() {
        Some(Target::Type(ty)) if !ty.is_quantized() => ty,
        Some(Target::Preset(mix)) if !mix.default_type().is_quantized() => mix.default_type(),
        _ => {
            return Err(Failure::Usage(
                "unsupported adapter type; expected f32, f16 or bf16".into(),
            ));
        }
    };
    let (base, tuned) = (open(&args.base)?, open(&args.tuned)?);
    let overwrite = args.force.protecting(base.files().chain(tuned.files()));
    // Checked before long work.
    overwrite.check(&args.output)?;
    let (base, tuned) = (base.model(), tuned.model());
    let progress = Progress::new();
    let mut extraction = extract::extract(base, tuned, args.rank as usize, &progress)?;
    progress.finish();
    for item in &mut extraction.job.items {
        item.target = matrices;
    }
    terminal::notes(&extraction.notes);
    commands::write(&extraction.job, &args.output, &overwrite)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let explained: serde_json::Map<_, _> =
            extraction.captured.into_iter().map(|(name, share)| (name, share.into())).collect();
        document::print(&mut out, "lora-extract/2", json!({ "explained": explained }))?;
    } else {
        let count = extraction.captured.len();
        let mean = extraction.captured.iter().map(|(_, share)| share).sum::<f64>() / count as f64;
        let min = extraction.captured.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        writeln!(
            out,
            "{count} matrices differ; the adapter explains {:.1}% of the difference",
            100.0 * mean
        )?;
        if let Some((name, share)) = min {
            writeln!(out, "min: {:.1}% (`{name}`)", 100.0 * share)?;
        }
    }
    Ok(())
}
