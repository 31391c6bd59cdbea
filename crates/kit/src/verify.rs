//! A model held against what it was made from.

use std::path::Path;

use gguf_checkpoint::Checkpoint;
use gguf_convert::{hf, provenance};
use gguf_pipeline::Job;
use gguf_quantize::importance::Importance;
use gguf_quantize::recipe::{Mix, Target};
use gguf_quantize::verify::{Verified, missing, verify};
use gguf_store::{Model, Progress};

use crate::{Error, open};

/// What came of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// What came of each tensor.
    pub tensors: Vec<Verified>,
    /// Tensors that the source gives and the model has not.
    pub missing: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Derives the tensors of `model` whose names are `chosen` again from `source`, a checkpoint
/// directory or a model, and compares.
///
/// # Errors
/// If one of them cannot be read, or `progress` ended the work.
pub fn against(
    model: &Model,
    source: &str,
    importance: Option<&Importance>,
    chosen: &(dyn Fn(&str) -> bool + Sync),
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let mut notes = Vec::new();
    let dir = Path::new(source);
    let job = if dir.join("config.json").is_file() {
        let checkpoint = Checkpoint::open(dir)?;
        if let Some(recorded) = model.metadata().str(provenance::DIGEST)
            && recorded != provenance::digest(dir, &checkpoint)?
        {
            notes.push("the model says that it was made from another checkpoint".to_owned());
        }
        let options =
            hf::Options { outtype: Some(Target::Mix(Mix::F32)), ..hf::Options::default() };
        hf::plan(dir, &checkpoint, &options)?.job
    } else {
        Job::copy(open(source)?.model())
    };
    let missing = missing(model, &job).into_iter().filter(|name| chosen(name)).collect();
    let tensors = verify(model, job, importance, chosen, progress)?;
    Ok(Report { tensors, missing, notes })
}
