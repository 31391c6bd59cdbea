//! A model held against what it was made from.

use std::collections::HashMap;
use std::path::Path;

use gguf_calibrate::Calibrated;
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use gguf_convert::{hf, provenance};
use gguf_pipeline::{Item, Job, Tensor};
use gguf_quantize::importance::Importance;
use gguf_quantize::recipe::{Mix, Target};
use gguf_quantize::verify::{Outcome, Verified, Way, missing, verify};
use gguf_store::{Model, Progress};

use crate::calibration::{Calibration, PREFIX, Reading, Ready};
use crate::{Error, digest, open, read_text, scratch};

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
/// directory or a model, and compares. `calibration` is what its weights were rounded by, of a text as much as the
/// model says that was read; all that was rounded so is derived again then, chosen or not.
///
/// # Errors
/// If one of them cannot be read, or `progress` ended the work; `calibration-other` if the model says that it was
/// rounded by another text.
pub fn against(
    model: &Model,
    source: &str,
    importance: Option<&Importance>,
    calibration: Option<&Calibration>,
    chosen: &(dyn Fn(&str) -> bool + Sync),
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let mut notes = Vec::new();
    let dir = Path::new(source);
    let job = if Config::file_in(dir).is_some() {
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
    let was_calibrated = model.metadata().str(&format!("{PREFIX}method")).is_some();
    let calibrated = match calibration {
        Some(calibration) => derive(model, source, &job, calibration, progress)?,
        None => HashMap::new(),
    };
    if was_calibrated && calibration.is_none() {
        let what =
            "the model says that its weights were rounded by a text: give it with --calibrate";
        notes.push(what.to_owned());
    }
    let others = |name: &str| chosen(name) && !calibrated.contains_key(name);
    let mut tensors = verify(model, job, importance, &others, progress)?;
    let derived = calibrated.into_iter().filter(|(name, _)| chosen(name));
    tensors.extend(derived.map(|(name, outcome)| Verified { name, outcome }));
    let order = model.index();
    let place = |one: &Verified| order.get(one.name.as_str()).map(|tensor| tensor.offset);
    tensors.sort_by_key(place);
    Ok(Report { tensors, missing, notes })
}

/// What comes of the tensors that were rounded by a text.
fn derive(
    model: &Model,
    source: &str,
    job: &Job,
    calibration: &Calibration,
    progress: &dyn Progress,
) -> Result<HashMap<String, Outcome>, Error> {
    let said = |name: &str| model.metadata().get(&format!("{PREFIX}{name}"));
    let mut calibration = calibration.clone();
    if let Calibration::Text(Reading { text, window, tokens }) = &mut calibration {
        let digest = digest::sha256(read_text(text)?.as_bytes());
        if said("text_sha256").and_then(|said| said.as_str()).is_some_and(|said| said != digest) {
            let what = format!("the model was rounded by another text than {}", text.display());
            return Err(Error::request(
                "calibration-other",
                what,
                "give the one that it was made with",
            ));
        }
        let number = |name: &str| said(name).and_then(|said| said.to_u64());
        (*window, *tokens) = (
            number("window").map_or(*window, |said| said as usize),
            number("tokens_most").map_or(*tokens, |said| said as usize),
        );
    }
    let opened = open(source)?;
    let ready = Ready::open(opened.model(), source, &calibration)?;
    let index = model.index();
    let mut job = job.clone();
    for item in &mut job.items {
        let there = index.get(item.tensor.name.as_str());
        item.target = there.map_or(item.target, |there| there.info.tensor_type);
    }
    let items: Vec<_> =
        job.items.iter().filter(|item| item.target != item.tensor.stored_type).collect();
    let len = |item: &&&Item| item.target.byte_len(&item.tensor.shape);
    progress.begin(
        "calibrating",
        items.iter().filter(|item| ready.has(item)).filter_map(|item| len(&item)).sum(),
    );
    let mut outcomes = HashMap::new();
    let directory = scratch::directory()?;
    let mut each = |made: Calibrated| {
        let Some(tensor) = index.get(made.name.as_str()) else { return Ok(()) };
        let tensor = Tensor::of_model(tensor);
        let mut wanted = Vec::new();
        tensor.read_rows(0, tensor.rows(), &mut wanted)?;
        let row_bytes = (wanted.len() as u64 / tensor.rows().max(1)).max(1);
        let differs = wanted.iter().zip(&made.bytes).position(|(a, b)| a != b);
        let outcome = match differs {
            None => Outcome::Same(Way::Direct),
            Some(byte) => Outcome::Differs { row: byte as u64 / row_bytes },
        };
        outcomes.insert(made.name, outcome);
        progress.step(made.bytes.len() as u64)
    };
    ready.calibrate(&items, directory.path(), &|_| Ok(None), &mut each, progress)?;
    Ok(outcomes)
}
