//! The sub-commands.

pub mod bench;
pub mod chat_template;
pub mod check;
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
pub mod imatrix;
pub mod inspect;
pub mod logits;
pub mod lora;
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

use std::path::Path;

use gguf_pipeline::Job;
use gguf_store::Overwrite;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal;

/// Runs a job with a progress bar, and says what came of it.
fn write(job: &Job, out: &Path, overwrite: &Overwrite) -> Result<(), Failure> {
    let header = job.header()?;
    let total = header.data_len();
    let progress = Progress::new();
    job.write(out, overwrite, &progress)?;
    let elapsed = progress.finish();
    eprintln!(
        "wrote {} ({}) in {:.1} s",
        out.display(),
        crate::listing::bytes(total),
        elapsed.as_secs_f64()
    );
    Ok(())
}

/// Tells the user what is worth knowing, beside the output of the command.
pub fn print_notes(notes: &[String]) {
    for note in notes {
        terminal::note(note);
    }
}
