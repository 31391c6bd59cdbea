//! `gguf imatrix`: importance matrices collected, put together, converted and shown.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::eval::{
    self, ChunkOptions, Collection, ImatrixOptions, PartWriter, RunOptions, Task,
};
use gguf_kit::quantize::{CalibrationText, Part, save_hessians};
use gguf_kit::{Error, on_threads};
use gguf_quantize::imatrix::{Imatrix, Statistics, statistics};
use gguf_runtime::CacheType;
use gguf_store::{Existing, Overwrite};
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::running::{RunArgs, Sums};

/// ImatrixOptions, combine, convert or show importance matrices.
///
/// A model collects one while it reads a text; matrices are added up, written in another form, or shown.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf imatrix f16.gguf -f calibration.txt -o imatrix.gguf\n  \
    gguf imatrix f16.gguf -f calibration.txt --part 1/4 -o imatrix-1.part\n  \
    gguf imatrix f16.gguf -f calibration.txt --moments -c 256 -o moments.gguf\n  \
    gguf imatrix --in-file a.gguf --in-file b.dat -o both.gguf\n  \
    gguf imatrix --in-file imatrix.gguf --show-statistics")]
pub struct Args {
    /// The model that reads: file, directory (of a checkpoint, too), shard or far location.
    #[arg(requires = "file", requires = "output_file")]
    model: Option<String>,
    /// The file with the text that it reads.
    #[arg(short, long, value_name = "TEXT", requires = "model")]
    file: Option<PathBuf>,
    /// An importance matrix, GGUF or legacy `.dat`, to add; may be repeated.
    #[arg(long, required_unless_present = "model", value_name = "FILE")]
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
    /// All second moments of what enters each matrix, for `gguf quantize --calibration-data`, and not an importance
    /// matrix: many times as large. Of a model that hears, TEXT is a recording.
    #[arg(long, requires = "model", conflicts_with_all = ["in_file", "output_format", "show_statistics", "chunk",
        "parse_special", "process_output", "output_frequency", "save_frequency", "resume", "part", "json"])]
    moments: bool,
    #[command(flatten)]
    collect: CollectArgs,
    /// Show figures per weight matrix.
    #[arg(long)]
    show_statistics: bool,
    /// What was read, and the figures, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    force: Force,
}

/// How a text is read.
#[derive(clap::Args)]
#[group(skip)]
struct CollectArgs {
    /// Chunks to read at most [default: all].
    #[arg(long, value_name = "N", requires = "model")]
    chunks: Option<NonZeroUsize>,
    /// The first chunk to read, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "model")]
    chunk: usize,
    /// Take the texts of control tokens for these tokens.
    #[arg(long, requires = "model")]
    parse_special: bool,
    /// ImatrixOptions for `output.weight` too.
    #[arg(long, requires = "model")]
    process_output: bool,
    /// Write what there is after so many chunks, again and again.
    #[arg(long, value_name = "N", default_value = "10", requires = "model")]
    output_frequency: NonZeroUsize,
    /// Write a copy with the number of chunks in its name after so many chunks.
    #[arg(long, value_name = "N", requires = "model")]
    save_frequency: Option<NonZeroUsize>,
    /// Go on where the output file ends: with the chunks that it does not have.
    #[arg(long, requires = "model")]
    resume: bool,
    /// Read the I-th of N shares of the chunks only, for several machines: the output is then a part,
    /// of which `gguf eval-merge` makes the whole.
    #[arg(long, value_name = "I/N", requires = "model")]
    #[arg(conflicts_with_all = ["in_file", "output_format", "save_frequency"])]
    part: Option<Part>,
    /// Tokens that are computed together; changes nothing but speed and memory.
    #[arg(short, long, value_name = "N", default_value = "512", requires = "model")]
    batch_size: NonZeroUsize,
    /// How products are computed.
    #[arg(long, value_enum, default_value_t = Sums::Exact, requires = "model")]
    arithmetic: Sums,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Gguf,
    Dat,
}

impl Form {
    fn of_name(path: &Path) -> Self {
        if path.extension().is_some_and(|end| end == "dat") { Self::Dat } else { Self::Gguf }
    }
}

/// Writes an importance matrix in the form of a name's ending.
pub fn write_as_named(all: &Imatrix, path: &Path, overwrite: &Overwrite) -> Result<(), Error> {
    match Form::of_name(path) {
        Form::Gguf => all.write_gguf(path, overwrite),
        Form::Dat => all.write_legacy(path, overwrite),
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if args.moments {
        return save_moments(args);
    }
    let read = args.in_file.iter().map(|path| Imatrix::open(path));
    let mut read = read.collect::<Result<Vec<_>, _>>()?;
    let known = read.iter().find_map(|one| one.chunk_size);
    let chunk_size = args.ctx_size.map(Into::into).or(known).unwrap_or(512);
    let mut whole = (!read.is_empty()).then(|| read.remove(0));
    if let Some(whole) = whole.as_mut().filter(|_| args.ctx_size.is_some()) {
        *whole = whole.to_token_sums(chunk_size);
    }
    for (other, path) in read.iter().zip(args.in_file.iter().skip(1)) {
        merge(&mut whole, other, chunk_size)
            .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    }
    if let Some(model) = &args.model {
        collect(args, model, chunk_size, &mut whole)?;
    } else if let (Some(path), Some(whole)) = (&args.output_file, &whole) {
        write(args, whole, path, &args.force.protecting(&args.in_file))?;
    }
    if let Some(path) = &args.output_file {
        eprintln!("wrote {}", path.display());
    }
    let mut out = std::io::stdout().lock();
    let whole = whole.unwrap_or_default();
    tell(&mut out, &whole, args.json)?;
    if args.show_statistics && !args.json {
        show(&mut out, &statistics(&whole))?;
    }
    Ok(())
}

/// Says what an importance matrix is of.
pub fn tell(out: &mut impl Write, whole: &Imatrix, json: bool) -> Result<(), Failure> {
    if json {
        document::print(out, "imatrix/1", as_json(whole))?;
    } else {
        writeln!(
            out,
            "{} matrices, {} chunks of {} tokens, of {}",
            whole.entries.len(),
            whole.chunk_count,
            whole.chunk_size.map_or("an unknown number of".into(), |n| n.to_string()),
            whole.datasets.join(", "),
        )?;
    }
    Ok(())
}

/// Writes all moments of what a model makes of a text.
fn save_moments(args: &Args) -> Result<(), Failure> {
    let (Some(model), Some(text), Some(path)) = (&args.model, &args.file, &args.output_file) else {
        return Ok(());
    };
    let mut reading = CalibrationText::new(text);
    if let Some(tokens) = args.ctx_size {
        reading.chunk = tokens.get() as usize;
    }
    if let Some(chunks) = args.collect.chunks {
        reading.tokens = reading.chunk.saturating_mul(chunks.get());
    }
    let overwrite = args.force.protecting([text.clone(), PathBuf::from(model)]);
    on_threads(args.run.threads, || {
        let progress = Progress::new();
        save_hessians(model, &reading, path, &overwrite, &progress)?;
        progress.finish();
        Ok::<_, Failure>(())
    })?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// Adds what a model makes of a text, and writes it, now and then and in the end.
fn collect(
    args: &Args,
    model: &str,
    chunk_size: u32,
    whole: &mut Option<Imatrix>,
) -> Result<(), Failure> {
    let (Some(file), Some(path)) = (&args.file, &args.output_file) else { return Ok(()) };
    let how = &args.collect;
    let inputs = || args.in_file.iter().cloned().chain([file.clone(), PathBuf::from(model)]);
    let cut = ChunkOptions {
        len: chunk_size as usize,
        count: how.chunks.map(|chunks| how.chunk + chunks.get()),
        stride: None,
    };
    let cache_type = args.run.cache_type_or(CacheType::F32);
    let run = RunOptions { cache_type, batch: how.batch_size.get() };
    let task = Task { text: gguf_kit::read_text(file)?, special: how.parse_special, cut, run };
    let dataset = file.display().to_string();
    let collection = Collection { dataset, output: how.process_output };
    let mut collect = ImatrixOptions { collection, skip: how.chunk };
    let was_there = path.exists() && !how.resume;
    let collected =
        |collect: &ImatrixOptions, mut keeper: PartWriter, each: &mut eval::OnImatrixChunk<'_>| {
            on_threads(args.run.threads, || {
                let progress = Progress::of_tokens();
                let options = args.run.options(how.arithmetic);
                let made =
                    eval::imatrix(model, &options, &task, collect, &mut keeper, each, &progress)?;
                progress.finish();
                Ok(made)
            })
            .map_err(|failure: Failure| match failure {
                Failure::Interrupted if path.exists() && !was_there => Failure::Paused,
                failure => failure,
            })
        };
    if let Some(part) = how.part {
        let keeper = PartWriter::new(part, path, args.force.existing(), inputs(), how.resume)?;
        *whole = Some(collected(&collect, keeper, &mut |_, _| Ok(()))?);
        return Ok(());
    }
    if how.resume && path.exists() {
        let before = Imatrix::open(path)?;
        collect.skip += before.chunk_count as usize;
        merge(whole, &before, chunk_size)?;
    } else {
        args.force.protecting(inputs()).check(path)?;
    }
    // What is under that name from here on is ours.
    let copies = args.force.protecting(inputs());
    let overwrite = Overwrite::new(Existing::Replace).protecting(inputs());
    let before = whole.clone();
    let with_before = |made: Imatrix| -> Result<Imatrix, Error> {
        let mut all = before.clone();
        merge(&mut all, &made, chunk_size)?;
        Ok(all.unwrap_or_default())
    };
    let mut each = |read: usize, sums: &dyn Fn() -> Imatrix| {
        if read.is_multiple_of(how.output_frequency.get()) {
            write(args, &with_before(sums())?, path, &overwrite)?;
        }
        if how.save_frequency.is_some_and(|every| read.is_multiple_of(every.get())) {
            let copy = format!("{}.at_{}", path.display(), collect.skip + read);
            write(args, &with_before(sums())?, Path::new(&copy), &copies)?;
        }
        Ok(())
    };
    let made = collected(&collect, PartWriter::default(), &mut each)?;
    let all = with_before(made)?;
    write(args, &all, path, &overwrite)?;
    *whole = Some(all);
    Ok(())
}

/// Adds sums to those that there are, if there are any. A text that is read in parts is named once.
fn merge(whole: &mut Option<Imatrix>, other: &Imatrix, chunk_size: u32) -> Result<(), Error> {
    match whole {
        Some(whole) => {
            whole.merge(other, chunk_size)?;
            whole.datasets.dedup();
        }
        None => *whole = Some(other.clone()),
    }
    Ok(())
}

fn write(args: &Args, all: &Imatrix, path: &Path, overwrite: &Overwrite) -> Result<(), Error> {
    let named = args.output_file.as_deref().unwrap_or(path);
    match args.output_format.unwrap_or(Form::of_name(named)) {
        Form::Gguf => all.write_gguf(path, overwrite),
        Form::Dat => all.write_legacy(path, overwrite),
    }
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
            "deviation": one.deviation,
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
