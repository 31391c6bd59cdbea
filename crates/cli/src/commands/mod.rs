//! The sub-commands.

pub mod bench;
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
pub mod given;
pub mod graph;
pub mod hash;
pub mod help;
pub mod imatrix;
pub mod inspect;
pub mod links;
pub mod logits;
pub mod lora;
pub mod man;
pub mod merge;
pub mod name;
pub mod perplexity;
pub mod quality;
pub mod quantize;
pub mod recipe;
pub mod render_template;
pub mod sensitivity;
pub mod split;
pub mod tokenize;
pub mod transcribe;
pub mod verify;

use std::path::{Path, PathBuf};
use std::time::Duration;

use gguf_pipeline::Job;
use gguf_store::Overwrite;
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;

/// Says that `--resume` finds other work.
fn say_anew() {
    eprintln!(
        "begins anew: what an earlier run left is of other inputs, options or another version"
    );
}

/// Says what was written: files, and bytes of tensors in each.
fn say_written(
    schema: &str,
    files: &[(PathBuf, u64)],
    elapsed: Duration,
    as_json: bool,
) -> Result<(), Failure> {
    let seconds = elapsed.as_secs_f64();
    if as_json {
        let file = |(path, bytes): &(PathBuf, u64)| json!({ "file": path.display().to_string(), "bytes": bytes });
        let files: Vec<_> = files.iter().map(file).collect();
        let written = json!({ "written": files, "seconds": seconds });
        return Ok(document::print(&mut std::io::stdout().lock(), schema, written)?);
    }
    for (path, bytes) in files {
        let size = crate::listing::bytes(*bytes);
        eprintln!("wrote {} ({size}) in {seconds:.1} s", path.display());
    }
    Ok(())
}

/// Runs a job with a progress bar, and says what came of it.
fn write(job: &Job, out: &Path, overwrite: &Overwrite) -> Result<(), Failure> {
    let header = job.header()?;
    let total = header.data_len();
    let progress = Progress::new();
    job.write(out, overwrite, &progress)?;
    let elapsed = progress.finish();
    say_written("", &[(out.to_owned(), total)], elapsed, false)
}

/// Tells the user what is worth knowing, beside the output of the command. What warns says so itself.
pub fn print_notes(notes: &[String]) {
    for note in notes {
        match note.starts_with("warning: ") {
            true => eprintln!("{note}"),
            false => eprintln!("note: {note}"),
        }
    }
}
