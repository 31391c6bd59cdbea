//! Subcommands.

pub mod bench;
pub mod calibration_text;
pub mod card;
pub mod chat_template;
pub mod check;
pub mod completions;
pub mod convert;
pub mod demo;
pub mod detokenize;
pub mod diff;
pub mod divergence;
pub mod edit;
pub mod embed;
pub mod endian;
pub mod eval_merge;
pub mod export;
pub mod generate;
pub mod given_flags;
pub mod graph;
pub mod hash;
pub mod help;
pub mod hub_outputs;
pub mod imatrix;
pub mod inspect;
pub mod links;
pub mod logits;
pub mod lora;
pub mod man;
pub mod merge;
pub mod name;
pub mod perplexity;
pub mod pull;
pub mod quality;
pub mod quantize;
pub mod recipe;
pub mod recommend;
pub mod render_template;
pub mod sensitivity;
pub mod sign;
pub mod split;
pub mod tokenize;
pub mod transcribe;
pub mod upload;
pub mod verify;
pub mod view;

use std::path::Path;
use std::time::Duration;

use gguf_pipeline::Job;
use gguf_store::Overwrite;
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{listing, terminal};

/// Notes that `--resume` found progress of a different job.
fn note_restart() {
    terminal::note(
        "starting over: the saved progress belongs to other inputs, options or another version",
    );
}

/// Reports written jobs. `before` has the bits per weight of each source.
fn report_written<'j>(
    schema: &str,
    files: impl Iterator<Item = (&'j Job, &'j Path)>,
    before: &[f64],
    elapsed: Duration,
    as_json: bool,
) -> Result<(), Failure> {
    let files: Vec<_> = files.collect();
    let lens = files.iter().map(|(job, _)| Ok(job.file_len()?));
    let lens = lens.collect::<Result<Vec<_>, Failure>>()?;
    let seconds = elapsed.as_secs_f64();
    if as_json {
        let files = files.iter().zip(lens).map(|((_, path), len)| (*path, len));
        return print_written(schema, files, elapsed);
    }
    let is_one = files.len() == 1;
    for ((job, path), before) in files.iter().zip(before) {
        report_job(job, path, *before, is_one.then_some(elapsed));
    }
    if !is_one {
        let size = listing::bytes(lens.iter().sum());
        eprintln!("{} files, {size} in {seconds:.1} s", files.len());
    }
    Ok(())
}

/// Prints the written files as JSON: the size of each, and the time.
fn print_written<'p>(
    schema: &str,
    files: impl IntoIterator<Item = (&'p Path, u64)>,
    elapsed: Duration,
) -> Result<(), Failure> {
    let file = |(path, len): (&Path, u64)| json!({ "file": path.display().to_string(), "file_bytes": len });
    let files: Vec<_> = files.into_iter().map(file).collect();
    let written = json!({ "written": files, "seconds": elapsed.as_secs_f64() });
    Ok(document::print(&mut std::io::stdout().lock(), schema, written)?)
}

/// Returns the bits per weight of a job's source. Call it before calibration changes the job.
fn stored_bits(job: &Job) -> f64 {
    let totals = listing::Totals::of(job);
    listing::bits_per_weight(totals.stored, totals.elements)
}

/// Writes a job with a progress bar, and reports it.
fn write(job: &Job, out: &Path, overwrite: &Overwrite) -> Result<(), Failure> {
    let before = stored_bits(job);
    report_job(job, out, before, Some(write_with_progress(job, out, overwrite)?));
    Ok(())
}

/// Writes a job, and reports it as text or JSON.
fn write_and_report(
    schema: &str,
    job: &Job,
    out: &Path,
    overwrite: &Overwrite,
    as_json: bool,
) -> Result<(), Failure> {
    let time = write_with_progress(job, out, overwrite)?;
    report_written(schema, [(job, out)].into_iter(), &[stored_bits(job)], time, as_json)
}

fn write_with_progress(job: &Job, out: &Path, overwrite: &Overwrite) -> Result<Duration, Failure> {
    // As strict as the real thing, and before it.
    job.header()?;
    let progress = Progress::new();
    job.write(out, overwrite, &progress)?;
    Ok(progress.finish())
}

/// Reports a written job: architecture, type, file size, bits per weight of source and output, and the time if given.
fn report_job(job: &Job, out: &Path, before: f64, time: Option<Duration>) {
    let file_type = job.metadata.u64("general.file_type").and_then(gguf::file_type);
    let kind = [job.metadata.architecture(), file_type.map(|file_type| file_type.name)];
    let kind: Vec<_> = kind.into_iter().flatten().map(terminal::plain).collect();
    let totals = listing::Totals::of(job);
    let bits = listing::bits_per_weight(totals.bytes, totals.elements);
    let bits = match bits > 0.0 {
        true => Some(listing::change_of_bits(before, bits)),
        false => None,
    };
    print_report(out, &kind.join(" "), job.file_len().ok(), bits, time);
}

/// Reports a written file.
fn report_file(out: &Path, time: Option<Duration>) {
    print_report(out, "", out.metadata().ok().map(|written| written.len()), None, time);
}

fn print_report(
    out: &Path,
    kind: &str,
    size: Option<u64>,
    bits: Option<String>,
    time: Option<Duration>,
) {
    let mut line = format!("wrote {}", out.display());
    let size = size.map(listing::bytes);
    let parts: Vec<_> = [Some(kind.to_owned()).filter(|kind| !kind.is_empty()), size]
        .into_iter()
        .flatten()
        .collect();
    if !parts.is_empty() {
        line += &format!(": {}", parts.join(", "));
    }
    if let Some(bits) = bits {
        line += &format!(" ({bits})");
    }
    if let Some(time) = time {
        line += &format!(" in {:.1} s", time.as_secs_f64());
    }
    eprintln!("{line}");
}

/// Processes several sources. Reports the failure of one, and continues with the next.
fn each(
    sources: &[String],
    mut work: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failed = None;
    for source in sources {
        match work(source) {
            Ok(()) => {}
            // The caller reports the failure of a single source. Cancellation ends the loop.
            Err(failure) if sources.len() == 1 => return Err(failure),
            Err(end @ (Failure::ClosedPipe | Failure::Interrupted | Failure::Paused)) => {
                return Err(end);
            }
            Err(failure) => {
                failure.print();
                document::print_error_line(&failure);
                failed.get_or_insert(failure.exit_code());
            }
        }
    }
    failed.map_or(Ok(()), |code| Err(Failure::Reported(code)))
}
