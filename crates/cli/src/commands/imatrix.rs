//! `gguf imatrix`: importance matrices put together, converted and shown.

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf_quantize::imatrix::{Imatrix, Statistics, statistics};
use serde_json::json;

use crate::failure::Failure;
use crate::force::Force;

/// Combine importance matrices, convert them between their forms, or show what they say.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf imatrix --in-file a.gguf --in-file b.dat -o both.gguf\n  \
    gguf imatrix --in-file imatrix.gguf --show-statistics")]
pub struct Args {
    /// An importance matrix, GGUF or legacy `.dat`; may be repeated.
    #[arg(long, required = true, value_name = "FILE")]
    in_file: Vec<PathBuf>,
    /// Where to write the sum of all.
    #[arg(short, long, visible_alias = "output", value_name = "FILE")]
    output_file: Option<PathBuf>,
    /// The form to write: by default that of the name's ending.
    #[arg(long, value_enum, requires = "output_file")]
    output_format: Option<Form>,
    /// Tokens per chunk, which files in the legacy form do not say; by default that of the first
    /// GGUF, or 512. Chunks are counted anew by it.
    #[arg(short, long, value_name = "N")]
    ctx_size: Option<std::num::NonZeroU32>,
    /// Show figures per weight matrix.
    #[arg(long)]
    show_statistics: bool,
    /// What was read, and the figures, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Gguf,
    Dat,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let read = args.in_file.iter().map(|path| Imatrix::open(path));
    let mut read = read.collect::<Result<Vec<_>, _>>()?;
    let known = read.iter().find_map(|one| one.chunk_size);
    let chunk_size = args.ctx_size.map(Into::into).or(known).unwrap_or(512);
    let mut whole = read.remove(0);
    if args.ctx_size.is_some() {
        whole = whole.in_tokens(chunk_size);
    }
    for (other, path) in read.iter().zip(&args.in_file[1..]) {
        whole
            .merge(other, chunk_size)
            .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    }
    if let Some(path) = &args.output_file {
        let overwrite = args.force.sparing(&args.in_file);
        match args.output_format.unwrap_or(of_name(path)) {
            Form::Gguf => whole.write_gguf(path, &overwrite)?,
            Form::Dat => whole.write_legacy(path, &overwrite)?,
        }
        eprintln!("wrote {}", path.display());
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", as_json(&whole))?;
    } else {
        writeln!(
            out,
            "{} matrices, {} chunks of {} tokens, of {}",
            whole.entries.len(),
            whole.chunk_count,
            whole.chunk_size.map_or("an unknown number of".into(), |n| n.to_string()),
            whole.datasets.join(", "),
        )?;
        if args.show_statistics {
            show(&mut out, &statistics(&whole))?;
        }
    }
    Ok(())
}

fn of_name(path: &Path) -> Form {
    if path.extension().is_some_and(|end| end == "dat") { Form::Dat } else { Form::Gguf }
}

fn show(out: &mut impl Write, all: &[Statistics]) -> Result<(), Failure> {
    writeln!(
        out,
        "{:<32} {:>12} {:>10} {:>10} {:>10} {:>10} {:>9} {:>7} {:>8} {:>9} {:>7} {:>7}",
        "tensor",
        "sum(act^2)",
        "min",
        "max",
        "mean",
        "stddev",
        "% active",
        "n",
        "entropy",
        "E (norm)",
        "ZD",
        "CosSim"
    )?;
    for one in all {
        let largest = (one.columns as f32).log2().max(f32::MIN_POSITIVE);
        writeln!(
            out,
            "{:<32} {:>12.2} {:>10.4} {:>10.4} {:>10.4} {:>10.4} {:>8.2}% {:>7} {:>8.4} {:>8.2}% \
             {:>6.2}% {:>7}",
            one.name,
            one.sum,
            one.min,
            one.max,
            one.mean,
            one.deviation,
            100.0 * one.active,
            one.columns,
            one.entropy,
            100.0 * one.entropy / largest,
            100.0 * one.outstanding,
            one.similarity.map_or("-".into(), |cosine| format!("{cosine:.4}")),
        )?;
    }
    Ok(())
}

fn as_json(imatrix: &Imatrix) -> serde_json::Value {
    let matrices = statistics(imatrix).into_iter().map(|one| {
        json!({
            "name": one.name,
            "sum": one.sum,
            "min": one.min,
            "max": one.max,
            "mean": one.mean,
            "stddev": one.deviation,
            "active": one.active,
            "columns": one.columns,
            "entropy": one.entropy,
            "zd": one.outstanding,
            "cosine": one.similarity,
        })
    });
    json!({
        "datasets": imatrix.datasets,
        "chunks": imatrix.chunk_count,
        "chunk_size": imatrix.chunk_size,
        "matrices": matrices.collect::<Vec<_>>(),
    })
}
