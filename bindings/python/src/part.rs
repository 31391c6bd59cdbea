//! Parts of distributed jobs, and merging of shards.

use std::path::PathBuf;

use gguf::Error;
use gguf::shard_keys::PART_FINGERPRINT;
use gguf_kit::quantize::Part;
use gguf_pipeline::Job;
use gguf_store::MergeOptions;
use pyo3::prelude::*;

use crate::error::request;
use crate::model::Source;
use crate::output::overwrite;
use crate::task::{TaskOptions, quick, run};

/// Parses a part such as `2/4`.
pub fn parse(part: Option<String>) -> PyResult<Option<Part>> {
    let parsed = part.map(|part| part.parse::<Part>()).transpose();
    parsed.map_err(|error| request("request-invalid", error.to_string()))
}

/// Returns the fingerprint that all parts of a job share; `None` if the outputs are not parts.
pub fn fingerprint_of<'j>(mut jobs: impl Iterator<Item = &'j Job>) -> Option<String> {
    jobs.next()?.metadata.str(PART_FINGERPRINT).map(str::to_owned)
}

/// Returns the fingerprint of a local or remote part file.
#[pyfunction]
pub fn part_fingerprint(py: Python<'_>, location: Source) -> PyResult<Option<String>> {
    let location = location.location()?;
    quick(py, || gguf_kit::quantize::fingerprint(&location))
}

/// Merges the shards of a model into one file.
#[pyfunction]
#[pyo3(signature = (source, output, delete_shards, force, progress))]
pub fn merge(
    py: Python<'_>,
    source: Source,
    output: PathBuf,
    delete_shards: bool,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let location = source.location()?;
    run(py, &TaskOptions { progress, threads: None }, |progress| {
        let opened = gguf_kit::open(&location)?;
        if delete_shards && opened.transferred().is_some() {
            let message = format!("{location} is remote; its shards cannot be deleted");
            return Err(Error::request("request-invalid", message, "omit delete_shards"));
        }
        let overwrite = overwrite(force).protecting(opened.files());
        gguf_store::merge(opened.model(), &output, MergeOptions::default(), &overwrite, progress)?;
        match delete_shards {
            true => gguf_store::delete_merged(opened.into_model(), &output),
            false => Ok(()),
        }
    })
}
