//! Quantization of models.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use gguf_kit::quantize::{self as quantization, Calibration, Goal, QuantizeOutput, Split};
use pyo3::prelude::*;

use crate::error::raise;
use crate::model::Source;
use crate::output::overwrite;
use crate::part;
use crate::recipe::{Recipe, WriteResult, target, types};
use crate::task::{TaskOptions, run};

/// Quantizes a model to one or more outputs in one pass.
#[pyfunction]
#[pyo3(signature = (source, outputs, recipe, part, resume, force, dry_run, progress, threads))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by keyword")]
pub fn quantize(
    py: Python<'_>,
    source: Source,
    outputs: Vec<(String, Option<PathBuf>)>,
    recipe: Recipe,
    part: Option<String>,
    resume: bool,
    force: bool,
    dry_run: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<WriteResult> {
    let (opened, location) = (source.open(py)?, source.location()?);
    let named = outputs.into_iter().map(|(name, path)| {
        let target = target(&name)?;
        let path = match path {
            Some(path) => path,
            None => quantization::default_path(&opened, &location, target).map_err(raise)?,
        };
        Ok(QuantizeOutput { goal: Goal::Target(target), path })
    });
    let split = part::parse(part)?.map_or(Split::None, Split::Part);
    let options = quantization::QuantizeRequest {
        outputs: named.collect::<PyResult<_>>()?,
        quantization: recipe.options()?,
        split,
        resume,
        calibration: recipe.calibration(py)?,
        ..quantization::QuantizeRequest::default()
    };
    let choice = recipe.choice();
    run(py, &TaskOptions { progress, threads }, |progress| {
        let mut options = options;
        let mut inputs: Vec<PathBuf> = opened.files().map(PathBuf::from).collect();
        if let Some(choice) = choice {
            choice.add_to(&mut options.quantization)?;
            options.quantization.recipe.has_imatrix = true;
            inputs.push(choice.file);
        }
        let files = options.calibration.iter().flat_map(Calibration::files);
        inputs.extend(files.map(PathBuf::from));
        let overwrite = overwrite(force).protecting(inputs);
        options.check_outputs(&overwrite)?;
        let mut plan = quantization::Plan::new(&opened, &location, &options, progress)?;
        if !dry_run {
            plan.write(&overwrite, &|| (), progress)?;
        }
        let files = plan.files().map(|(_, path)| path.into()).collect();
        let jobs = || plan.files().map(|(job, _)| job);
        Ok((files, plan.notes.clone(), types(jobs()), part::fingerprint_of(jobs())))
    })
}
