//! Verification of a model against its source.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use gguf_calibrate::{CalibratedTensor, Calibration, Calibrator, KEY_PREFIX, TextSource};
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use gguf_convert::{hf, provenance};
use gguf_pipeline::{Item, Job, Tensor};
use gguf_quantize::importance::Importance;
use gguf_quantize::recipe::{Preset, Target};
use gguf_quantize::verify::{ConversionPath, Outcome, VerifiedTensor, missing, verify};
use gguf_store::{Model, Progress, scratch};

use crate::{Error, open};

/// Result of a verification.
#[derive(Clone, Debug)]
pub struct VerifyReport {
    /// Outcome of each tensor.
    pub tensors: Vec<VerifiedTensor>,
    /// Tensors of the source that the model lacks.
    pub missing: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Derives the tensors of `model` that `is_selected` selects again from `source`, a checkpoint directory or a model, and
/// compares them. With a `calibration`, all calibrated tensors are derived, with the amount of text that the model
/// records.
///
/// # Errors
/// If a tensor cannot be read, or `progress` stopped the work; `calibration-other` if the model records another
/// calibration text.
pub fn against(
    model: &Model,
    source: &str,
    importance: Option<&Importance>,
    calibration: Option<&Calibration>,
    is_selected: &(dyn Fn(&str) -> bool + Sync),
    progress: &dyn Progress,
) -> Result<VerifyReport, Error> {
    let mut notes = Vec::new();
    let dir = Path::new(source);
    let job = if Config::file_in(dir).is_some() {
        let checkpoint = Checkpoint::open(dir)?;
        if let Some(recorded) = model.metadata().str(provenance::DIGEST)
            && recorded != provenance::digest(dir, &checkpoint)?
        {
            notes.push("the model records another checkpoint as its source".to_owned());
        }
        let options = hf::HfOptions {
            outtype: Some(Target::Preset(Preset::F32)),
            ..hf::HfOptions::default()
        };
        hf::plan(dir, &checkpoint, &options)?.job
    } else {
        Job::copy(open(source)?.model())
    };
    let missing = missing(model, &job).into_iter().filter(|name| is_selected(name)).collect();
    let is_calibrated = model.metadata().str(&format!("{KEY_PREFIX}method")).is_some();
    let calibrated = match calibration {
        Some(calibration) => verify_calibrated(model, source, &job, calibration, progress)?,
        None => HashMap::new(),
    };
    if is_calibrated && calibration.is_none() {
        notes.push("the model is calibrated by a text: give it with --calibrate".to_owned());
    }
    if let (None, Some(file)) = (importance, model.metadata().str("quantize.imatrix.file")) {
        notes.push(format!(
            "the model was quantized with an importance matrix, {file}: give it with --imatrix"
        ));
    }
    let is_other = |name: &str| is_selected(name) && !calibrated.contains_key(name);
    let mut tensors = verify(model, job, importance, &is_other, progress)?;
    let calibrated = calibrated.into_iter().filter(|(name, _)| is_selected(name));
    tensors.extend(calibrated.map(|(name, outcome)| VerifiedTensor { name, outcome }));
    let index = model.index();
    let offset = |one: &VerifiedTensor| index.get(one.name.as_str()).map(|tensor| tensor.offset);
    tensors.sort_by_key(offset);
    Ok(VerifyReport { tensors, missing, notes })
}

/// Encodes the calibrated tensors again, and returns the outcome of each.
fn verify_calibrated(
    model: &Model,
    source: &str,
    job: &Job,
    calibration: &Calibration,
    progress: &dyn Progress,
) -> Result<HashMap<String, Outcome>, Error> {
    let recorded = |name: &str| model.metadata().get(&format!("{KEY_PREFIX}{name}"));
    let number = |name: &str| recorded(name).and_then(|value| value.to_u64());
    let mut calibration = calibration.clone();
    if let Calibration::Text(text) = &mut calibration {
        let digest = text.digest()?;
        let expected = recorded("text_sha256").and_then(|value| value.as_str());
        if expected.is_some_and(|expected| expected != digest) {
            let name = |source: &TextSource| match source.path() {
                Some(path) => path.to_string_lossy().into_owned(),
                None => "the bundled one".to_owned(),
            };
            let names = text.sources.iter().map(name).collect::<Vec<_>>().join(" and ");
            let what = format!("the model is calibrated by another text than {names}");
            let help = "give the calibration text of the model; several in the same order";
            return Err(Error::request("calibration-other", what, help));
        }
        (text.chunk, text.tokens) = (
            number("window").map_or(text.chunk, |number| number as usize),
            number("tokens_most").map_or(text.tokens, |number| number as usize),
        );
    }
    let opened = open(source)?;
    let calibrator = Calibrator::open(opened.model(), source, &calibration, progress)?;
    let index = model.index();
    let mut job = job.clone();
    for item in &mut job.items {
        let tensor = index.get(item.tensor.name.as_str());
        item.target = tensor.map_or(item.target, |tensor| tensor.info.tensor_type);
    }
    // Matrices of other parts are those of the original.
    let parts = match number("parts").and_then(|count| u16::try_from(count).ok()) {
        Some(count) if (2..=job.items.len()).contains(&count.into()) => job.even_parts(count)?,
        _ => std::iter::once(0..job.items.len()).collect(),
    };
    let changed = |part: Range<usize>| -> Vec<&Item> {
        let items = job.items[part].iter();
        items.filter(|item| item.target != item.tensor.stored_type).collect()
    };
    let parts: Vec<_> = parts.into_iter().map(changed).collect();
    let len = |item: &&&Item| item.target.byte_len(&item.tensor.shape);
    let calibrated = parts.iter().flatten().filter(|item| calibrator.calibrates(item));
    progress.begin("calibrating", calibrated.filter_map(|item| len(&item)).sum());
    let mut outcomes = HashMap::new();
    let directory = scratch::directory()?;
    let mut on_tensor = |encoded: CalibratedTensor| {
        let Some(tensor) = index.get(encoded.name.as_str()) else {
            return Ok(encoded.bytes.into());
        };
        let tensor = Tensor::of_model(tensor);
        let mut expected = Vec::new();
        tensor.read_rows(0, tensor.rows(), &mut expected)?;
        let row_bytes = (expected.len() as u64 / tensor.rows().max(1)).max(1);
        let difference = expected.iter().zip(&encoded.bytes).position(|(a, b)| a != b);
        let outcome = match difference {
            None => Outcome::Identical(ConversionPath::Direct),
            Some(byte) => Outcome::Differs { row: byte as u64 / row_bytes },
        };
        outcomes.insert(encoded.name, outcome);
        progress.step(encoded.bytes.len() as u64)?;
        Ok(encoded.bytes.into())
    };
    for items in &parts {
        calibrator.calibrate(items, directory.path(), &|_| Ok(None), &mut on_tensor, progress)?;
    }
    Ok(outcomes)
}
