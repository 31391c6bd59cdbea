//! `gguf imatrix`: collects, merges, converts and shows importance matrices.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::Error;
use gguf_kit::eval::{
    self, ChunkOptions, Collection, ImatrixOptions, PartWriter, Perplexity, RunOptions, Task,
};
use gguf_kit::quantize::{CalibrationText, Part, TextSource, save_hessians};
use gguf_quantize::imatrix::{Imatrix, Statistics, statistics};
use gguf_runtime::CacheType;
use gguf_store::{Existing, Overwrite};
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::listing;
use crate::model_args::{PrecisionArg, RunArgs};
use crate::progress::Progress;
use crate::threads::on_threads;

/// Collect, merge, convert or show importance matrices.
///
/// Collects activation statistics while a model processes a text. Also merges matrices, converts between
/// formats, and shows statistics.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf imatrix f16.gguf -f calibration.txt -o imatrix.gguf\n  \
    gguf imatrix f16.gguf -f calibration.txt --part 1/4 -o imatrix-1.part\n  \
    gguf imatrix f16.gguf -f calibration.txt --hessian -c 256 -o hessian.gguf\n  \
    gguf imatrix --in-file a.gguf --in-file b.dat -o both.gguf\n  \
    gguf imatrix --in-file imatrix.gguf --show-statistics")]
pub struct Args {
    /// Model: a file, directory, checkpoint, shard or remote location.
    #[arg(requires = "file")]
    model: Option<String>,
    /// Calibration text file.
    #[arg(short, long, value_name = "TEXT", requires = "model")]
    file: Option<PathBuf>,
    /// Importance matrix to merge, GGUF or legacy `.dat`. May be repeated.
    #[arg(long, required_unless_present = "model", value_name = "FILE")]
    in_file: Vec<PathBuf>,
    /// Output file [default: imatrix.gguf for a model, or hessian.gguf].
    #[arg(short, long, visible_alias = "output", value_name = "FILE")]
    output_file: Option<PathBuf>,
    /// Output format [default: by file extension].
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Advanced")]
    output_format: Option<Format>,
    /// Chunk size in tokens [default: from the first GGUF, or 512]. Legacy files do not store it. Rescales
    /// chunk counts.
    #[arg(short, long, value_name = "N")]
    ctx_size: Option<std::num::NonZeroU32>,
    /// Save the input Hessian (X Xᵀ) of each matrix instead of an importance matrix, for `gguf quantize
    /// --calibration-data`. Many times larger. For a Whisper model, TEXT is an audio file.
    #[arg(long, alias = "moments", requires = "model", conflicts_with_all = ["in_file", "output_format", "show_statistics", "chunk",
        "parse_special", "process_output", "ppl", "output_frequency", "save_frequency", "resume", "part", "json"])]
    hessian: bool,
    #[command(flatten)]
    collect: CollectArgs,
    /// Show statistics of each matrix.
    #[arg(long)]
    show_statistics: bool,
    /// Print a summary and the statistics as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    force: Force,
}

/// Collection from a text.
#[derive(clap::Args)]
#[group(skip)]
struct CollectArgs {
    /// Maximum number of chunks [default: all].
    #[arg(long, value_name = "N", requires = "model")]
    chunks: Option<NonZeroUsize>,
    /// Index of the first chunk.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "model",
        help_heading = "Advanced"
    )]
    chunk: usize,
    /// Parse special tokens in the text.
    #[arg(long, requires = "model")]
    parse_special: bool,
    /// Also collect statistics for `output.weight`.
    #[arg(long, requires = "model")]
    process_output: bool,
    /// Print the perplexity of each chunk and of the text, to see that the model is sane. Takes longer, as it needs
    /// the output projection.
    #[arg(long, requires = "model", conflicts_with = "part")]
    ppl: bool,
    /// Save the output file every N chunks.
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        requires = "model",
        help_heading = "Advanced"
    )]
    output_frequency: NonZeroUsize,
    /// Save a copy, with the chunk count in its name, every N chunks.
    #[arg(long, value_name = "N", requires = "model", help_heading = "Advanced")]
    save_frequency: Option<NonZeroUsize>,
    /// Resume from the output file of an interrupted run on the same model and text.
    #[arg(long, requires = "model", conflicts_with = "in_file")]
    resume: bool,
    /// Collect only part I of N of the chunks, for distributed collection. `gguf eval-merge` merges the parts.
    #[arg(long, value_name = "I/N", requires = "model", requires = "output_file")]
    #[arg(conflicts_with_all = ["in_file", "output_format", "save_frequency"])]
    part: Option<Part>,
    /// Batch size for prompt processing; affects speed and memory only.
    #[arg(short, long, value_name = "N", default_value = "512", requires = "model")]
    batch_size: NonZeroUsize,
    /// Compute precision: F32 accumulation (exact) or 8-bit activations (fast).
    #[arg(long, value_enum, default_value_t = PrecisionArg::Exact, alias = "arithmetic", requires = "model")]
    precision: PrecisionArg,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Gguf,
    Dat,
}

impl Format {
    fn from_path(path: &Path) -> Self {
        if path.extension().is_some_and(|end| end == "dat") { Self::Dat } else { Self::Gguf }
    }
}

/// Writes an importance matrix in the format of the file extension.
pub fn write_by_extension(all: &Imatrix, path: &Path, overwrite: &Overwrite) -> Result<(), Error> {
    match Format::from_path(path) {
        Format::Gguf => all.write_gguf(path, overwrite),
        Format::Dat => all.write_legacy(path, overwrite),
    }
}

impl Args {
    /// Returns the output file: what is collected is always saved.
    fn output(&self) -> Option<PathBuf> {
        let default = if self.hessian { "hessian.gguf" } else { "imatrix.gguf" };
        self.output_file.clone().or(self.model.as_ref().map(|_| default.into()))
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if args.hessian {
        return write_hessians(args);
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
    let mut perplexity = None;
    if let Some(model) = &args.model {
        perplexity = collect(args, model, chunk_size, &mut whole)?;
    } else if let (Some(path), Some(whole)) = (args.output(), &whole) {
        write(args, whole, &path, &args.force.protecting(&args.in_file))?;
    }
    if let Some(path) = args.output() {
        eprintln!("wrote {}", path.display());
    }
    let mut out = std::io::stdout().lock();
    let whole = whole.unwrap_or_default();
    print_summary(&mut out, &whole, perplexity, args.json)?;
    if args.show_statistics && !args.json {
        show(&mut out, &statistics(&whole))?;
    }
    Ok(())
}

/// Prints a summary of an importance matrix.
pub fn print_summary(
    out: &mut impl Write,
    whole: &Imatrix,
    perplexity: Option<Perplexity>,
    json: bool,
) -> Result<(), Failure> {
    if json {
        document::print(out, "imatrix/2", as_json(whole, perplexity))?;
    } else {
        if let Some(found) = perplexity {
            writeln!(out, "perplexity {:.4} ± {:.5}", found.value(), found.error())?;
        }
        writeln!(
            out,
            "{}, {} of {} tokens, from {}",
            if whole.entries.len() == 1 {
                "1 matrix".into()
            } else {
                format!("{} matrices", whole.entries.len())
            },
            listing::plural(whole.chunk_count as usize, "chunk"),
            whole.chunk_size.map_or("an unknown number of".into(), |n| n.to_string()),
            whole.datasets.join(", "),
        )?;
    }
    Ok(())
}

/// Collects and saves Hessians.
fn write_hessians(args: &Args) -> Result<(), Failure> {
    let (Some(model), Some(text), Some(path)) = (&args.model, &args.file, args.output()) else {
        return Ok(());
    };
    let mut reading = CalibrationText::new(vec![TextSource::File(text.clone())]);
    if let Some(tokens) = args.ctx_size {
        reading.chunk = tokens.get() as usize;
    }
    if let Some(chunks) = args.collect.chunks {
        reading.tokens = reading.chunk.saturating_mul(chunks.get());
    }
    let overwrite = args.force.protecting([text.clone(), PathBuf::from(model)]);
    on_threads(args.run.threads, || {
        let progress = Progress::new();
        save_hessians(model, &reading, &path, &overwrite, &progress)?;
        progress.finish();
        Ok::<_, Failure>(())
    })?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// Collects statistics on a text, and saves them periodically and at the end.
fn collect(
    args: &Args,
    model: &str,
    chunk_size: u32,
    whole: &mut Option<Imatrix>,
) -> Result<Option<Perplexity>, Failure> {
    let (Some(file), Some(path)) = (&args.file, args.output()) else { return Ok(None) };
    let path = &*path;
    let collect_args = &args.collect;
    let inputs = || args.in_file.iter().cloned().chain([file.clone(), PathBuf::from(model)]);
    let cut = ChunkOptions {
        len: chunk_size as usize,
        count: collect_args.chunks.map(|chunks| collect_args.chunk + chunks.get()),
        stride: None,
    };
    let cache_type = args.run.cache_type_or(CacheType::F32);
    let run = RunOptions { cache_type, batch: collect_args.batch_size.get() };
    let task =
        Task { text: gguf_kit::read_text(file)?, special: collect_args.parse_special, cut, run };
    let dataset = file.display().to_string();
    let collection =
        Collection { dataset, output: collect_args.process_output, perplexity: collect_args.ppl };
    let mut collect = ImatrixOptions { collection, skip: collect_args.chunk, resumed: None };
    let was_there = path.exists() && !collect_args.resume;
    let collected =
        |collect: &ImatrixOptions, mut keeper: PartWriter, each: &mut eval::OnImatrixChunk<'_>| {
            on_threads(args.run.threads, || {
                let progress = Progress::of_tokens();
                let options = args.run.options(collect_args.precision);
                let result =
                    eval::imatrix(model, &options, &task, collect, &mut keeper, each, &progress)?;
                progress.finish();
                Ok(result)
            })
            .map_err(|failure: Failure| match failure {
                Failure::Interrupted if path.exists() && !was_there => Failure::Paused,
                failure => failure,
            })
        };
    if let Some(part) = collect_args.part {
        let keeper =
            PartWriter::new(part, path, args.force.existing(), inputs(), collect_args.resume)?;
        *whole = Some(collected(&collect, keeper, &mut |_, _, _| Ok(()))?);
        return Ok(None);
    }
    let copies = args.force.protecting(inputs());
    let own = Overwrite::new(Existing::Replace).protecting(inputs());
    let mut overwrite = copies.clone();
    if collect_args.resume && path.exists() {
        let before = Imatrix::open(path)?;
        collect.skip += before.chunk_count as usize;
        merge(whole, &before, chunk_size)?;
        collect.resumed = Some(before);
        overwrite = own.clone();
    } else {
        copies.check(path)?;
    }
    let before = whole.clone();
    let with_before = |result: Imatrix| -> Result<Imatrix, Error> {
        let mut all = before.clone();
        merge(&mut all, &result, chunk_size)?;
        Ok(all.unwrap_or_default())
    };
    let mut perplexity = None;
    let mut each = |read: usize, found: Option<&Perplexity>, sums: &dyn Fn() -> Imatrix| {
        if let Some(found) = found {
            perplexity = Some(*found);
            eprint!("[{read}]{:.4},", found.value());
        }
        if read.is_multiple_of(collect_args.output_frequency.get()) {
            write(args, &with_before(sums())?, path, &overwrite)?;
            // From here on the output file belongs to this run.
            overwrite = own.clone();
        }
        if collect_args.save_frequency.is_some_and(|every| read.is_multiple_of(every.get())) {
            let copy = format!("{}.at_{}", path.display(), collect.skip + read);
            write(args, &with_before(sums())?, Path::new(&copy), &copies)?;
        }
        Ok(())
    };
    let result = collected(&collect, PartWriter::default(), &mut each)?;
    let all = with_before(result)?;
    if perplexity.is_some() {
        eprintln!();
    }
    write(args, &all, path, &overwrite)?;
    *whole = Some(all);
    Ok(perplexity)
}

/// Merges `other` into `whole`, if any. A text collected in parts is listed once.
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
    match args.output_format.unwrap_or(Format::from_path(named)) {
        Format::Gguf => all.write_gguf(path, overwrite),
        Format::Dat => all.write_legacy(path, overwrite),
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

fn as_json(imatrix: &Imatrix, perplexity: Option<Perplexity>) -> serde_json::Value {
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
        "ppl": perplexity.map(|found| found.value()),
        "ppl_error": perplexity.map(|found| found.error()),
        "matrices": matrices.collect::<Vec<_>>(),
    })
}
