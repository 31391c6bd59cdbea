//! Parts of work that several machines do, and shards: what they have in common, and what they make together.

use std::path::PathBuf;

use gguf::Error;
use gguf::shard_keys::PART_FINGERPRINT;
use gguf_kit::eval::Merged;
use gguf_kit::quantize::Part;
use gguf_pipeline::Job;
use gguf_store::MergeOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::request;
use crate::imatrix::Imatrix;
use crate::judge;
use crate::make::overwrite;
use crate::model::Source;
use crate::work::{How, quick, run};

/// A part such as `2/4`.
pub fn parse(part: Option<String>) -> PyResult<Option<Part>> {
    let parsed = part.map(|part| part.parse::<Part>()).transpose();
    parsed.map_err(|fault| request("request-invalid", fault.to_string()))
}

/// What parts of this work have in common; `None` if no part is made.
pub fn fingerprint_of<'j>(mut jobs: impl Iterator<Item = &'j Job>) -> Option<String> {
    jobs.next()?.metadata.str(PART_FINGERPRINT).map(str::to_owned)
}

/// The fingerprint of a file that is a part, near or far.
#[pyfunction]
pub fn part_fingerprint(py: Python<'_>, location: Source) -> PyResult<Option<String>> {
    let word = location.word()?;
    quick(py, || gguf_kit::quantize::fingerprint(&word))
}

/// Shards in one file.
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
    let word = source.word()?;
    run(py, &How { progress, threads: None }, |progress| {
        let opened = gguf_kit::open(&word)?;
        if delete_shards && opened.transferred().is_some() {
            let what = format!("{word} is far away: its shards cannot be deleted");
            return Err(Error::request("request-invalid", what, "leave delete_shards out"));
        }
        let overwrite = overwrite(force).sparing(opened.files());
        gguf_store::merge(opened.model(), &output, MergeOptions::default(), &overwrite, progress)?;
        match delete_shards {
            true => gguf_store::delete_merged(opened.into_model(), &output),
            false => Ok(()),
        }
    })
}

/// What parts of an evaluation make together: the kind of figures, and those of each model by its name; or an
/// importance matrix.
#[pyfunction]
pub fn merge_parts(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Py<PyAny>> {
    let figures = |kind: &str, models: Vec<(String, Bound<'_, PyDict>)>| {
        Ok((kind, models).into_pyobject(py)?.into_any().unbind())
    };
    match quick(py, || gguf_kit::eval::merge(&paths))? {
        Merged::Perplexity(models) => {
            let fields = models.into_iter().map(|(name, found)| {
                let fields = PyDict::new(py);
                judge::fill(&found, &fields)?;
                Ok((name, fields))
            });
            figures("perplexity", fields.collect::<PyResult<_>>()?)
        }
        Merged::Divergence { models, found, .. } => {
            let fields = found.models.iter().map(|one| judge::figures(py, one));
            let fields = fields.collect::<PyResult<Vec<_>>>()?;
            figures("divergence", models.into_iter().zip(fields).collect())
        }
        Merged::Importance(matrix) => Ok(Bound::new(py, Imatrix(matrix))?.into_any().unbind()),
    }
}
