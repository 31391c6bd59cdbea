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

/// Does the same with each of several sources; where it fails with one, says why and goes on with the next.
fn each(
    sources: &[String],
    mut work: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failed = None;
    for source in sources {
        match work(source) {
            Ok(()) => {}
            // Of one, whoever called says it; these end all the work.
            Err(failure) if sources.len() == 1 => return Err(failure),
            Err(end @ (Failure::ClosedPipe | Failure::Interrupted | Failure::Paused)) => {
                return Err(end);
            }
            Err(failure) => {
                if let Some(message) = failure.message() {
                    terminal::error(message);
                }
                failed.get_or_insert(failure.exit_code());
            }
        }
    }
    failed.map_or(Ok(()), |code| Err(Failure::Said(code)))
}

/// Tells the user what is worth knowing, beside the output of the command.
pub fn print_notes(notes: &[String]) {
    for note in notes {
        terminal::note(note);
    }
}
