//! Conversion of checkpoints, adapters and legacy GGML files.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use gguf::{ByteOrder, Error};
use gguf_kit::convert::{self as conversion, OutputOptions};
use pyo3::prelude::*;

use crate::model::Source;
use crate::output::overwrite;
use crate::part;
use crate::recipe::{Recipe, WriteResult, target, types};
use crate::task::{TaskOptions, run};

/// Converts a checkpoint, an adapter or a legacy GGML file to one or more outputs.
#[pyfunction]
#[pyo3(signature = (source, outputs, recipe, vocab_only, mmproj, big_endian, architecture, model_name, metadata,
    base, target_model_dir, part, resume, force, dry_run, progress, threads))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by keyword")]
pub fn convert(
    py: Python<'_>,
    source: PathBuf,
    outputs: Vec<(Option<String>, Option<PathBuf>)>,
    recipe: Recipe,
    vocab_only: bool,
    mmproj: bool,
    big_endian: bool,
    architecture: Option<String>,
    model_name: Option<String>,
    metadata: Option<PathBuf>,
    base: Option<PathBuf>,
    target_model_dir: Option<PathBuf>,
    part: Option<String>,
    resume: bool,
    force: bool,
    dry_run: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<WriteResult> {
    let location = Source::Location(source).location()?;
    let outputs = outputs.into_iter().map(|(name, path)| {
        Ok(OutputOptions { outtype: name.map(|name| target(&name)).transpose()?, path })
    });
    let options = conversion::ConvertOptions {
        outputs: outputs.collect::<PyResult<_>>()?,
        quantization: recipe.options()?,
        imatrix: recipe.choice(),
        vocab_only,
        mmproj,
        order: if big_endian { ByteOrder::Big } else { ByteOrder::Little },
        architecture,
        model_name,
        metadata,
        base,
        target_model_dir,
        part: part::parse(part)?,
        resume,
        calibration: recipe.calibration(py)?,
        ..conversion::ConvertOptions::default()
    };
    run(py, &TaskOptions { progress, threads }, |progress| {
        let kind = conversion::kind(&location, options.architecture.as_deref())?;
        let mut plan = conversion::Plan::new(&location, kind, &options, progress)?;
        let overwrite = overwrite(force).protecting(&plan.inputs);
        let planned = plan.files()?;
        let files: Vec<PathBuf> = planned.iter().map(|(_, path)| path.clone()).collect();
        if !dry_run {
            files.iter().try_for_each(|path| overwrite.check(path))?;
            plan.write(&overwrite, &|| (), progress)?;
        }
        let jobs = || planned.iter().map(|(job, _)| job);
        let files = files.into_iter().map(OsString::from).collect();
        Ok::<_, Error>((files, plan.notes.clone(), types(jobs()), part::fingerprint_of(jobs())))
    })
}
