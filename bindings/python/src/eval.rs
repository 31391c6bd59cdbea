//! Evaluation: perplexity, KL divergence, importance matrices.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_kit::eval::{
    Against, ChunkOptions, Collection, CompareOptions, Divergence, ImatrixOptions, Merged,
    OnImatrixChunk, PartWriter, Perplexity, RunOptions, Spread, Task,
};
use gguf_kit::quantize::Part;
use gguf_kit::run::ExecutorOptions;
use gguf_runtime::CacheType;
use gguf_store::Existing;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::request;
use crate::imatrix::Imatrix;
use crate::model::Source;
use crate::part;
use crate::runner::precision;
use crate::task::{TaskOptions, quick, run};

/// Returns the evaluation task of a text, with an F32 KV cache.
fn task(text: String, context: usize, chunks: Option<usize>, stride: Option<usize>) -> Task {
    let run = RunOptions { cache_type: CacheType::F32, ..RunOptions::default() };
    Task { text, special: false, cut: ChunkOptions { len: context, count: chunks, stride }, run }
}

fn options(exact: bool) -> ExecutorOptions {
    ExecutorOptions { precision: precision(exact), ..ExecutorOptions::default() }
}

/// Sets the fields of a perplexity.
fn set_perplexity<'py>(found: &Perplexity, fields: &Bound<'py, PyDict>) -> PyResult<()> {
    fields.set_item("perplexity", found.value())?;
    fields.set_item("perplexity_error", found.error())?;
    fields.set_item("mean_nll", found.surprise.value())?;
    fields.set_item("tokens", found.surprise.count)?;
    fields.set_item("chunks", found.chunks)
}

/// Returns the fields of a KL divergence.
fn divergence_fields<'py>(py: Python<'py>, found: &Divergence) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    set_perplexity(&found.model, &fields)?;
    let spread = Spread::new(&found.divergences);
    fields.set_item("mean_kld", found.divergence.value())?;
    fields.set_item("mean_kld_error", found.divergence.error())?;
    fields.set_item("median_kld", spread.at(0.5))?;
    fields.set_item("max_kld", spread.at(1.0))?;
    fields.set_item("top1_agreement", found.top1_agreement().0)?;
    fields.set_item("reference_perplexity", found.reference.value())?;
    Ok(fields)
}

/// The part of the chunks to evaluate, and the file that stores its results.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PartOptions {
    part: Option<String>,
    keep: Option<PathBuf>,
    resume: bool,
    force: bool,
}

impl PartOptions {
    /// Returns a constructor of the writer of results.
    fn keeper(
        self,
        models: &[String],
    ) -> PyResult<impl FnOnce() -> Result<PartWriter, Error> + use<>> {
        let Self { part, keep, resume, force } = self;
        let share = part::parse(part)?;
        if keep.is_none() && (share.is_some() || resume) {
            return Err(request(
                "request-invalid",
                "a part needs a file for its results: give `keep`",
            ));
        }
        let existing = if force { Existing::Replace } else { Existing::Refuse };
        let models = models.to_vec();
        Ok(move || match keep {
            Some(path) => {
                let share = share.unwrap_or(Part::WHOLE);
                PartWriter::new(share, &path, existing, models.iter().map(Path::new), resume)
            }
            None => Ok(PartWriter::default()),
        })
    }
}

/// Measures the perplexity of a model on a text.
#[pyfunction]
#[pyo3(signature = (source, text, context, chunks, stride, exact, part_options, progress, threads))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by keyword")]
pub fn perplexity<'py>(
    py: Python<'py>,
    source: Source,
    text: String,
    context: usize,
    chunks: Option<usize>,
    stride: Option<usize>,
    exact: bool,
    part_options: PartOptions,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Bound<'py, PyDict>> {
    let (location, task) = (source.location()?, task(text, context, chunks, stride));
    let keeper = part_options.keeper(std::slice::from_ref(&location))?;
    let found = run(py, &TaskOptions { progress, threads }, |progress| {
        let (mut keeper, mut each) = (keeper()?, |_: &Perplexity| ());
        gguf_kit::eval::perplexity(
            &location,
            &options(exact),
            &task,
            None,
            &mut keeper,
            &mut each,
            progress,
        )
    })?;
    let fields = PyDict::new(py);
    set_perplexity(&found, &fields)?;
    Ok(fields)
}

/// Measures the KL divergence of models from a reference model.
#[pyfunction]
#[pyo3(signature = (reference, models, text, context, chunks, exact, part_options, progress, threads))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by keyword")]
pub fn divergence<'py>(
    py: Python<'py>,
    reference: Source,
    models: Vec<Source>,
    text: String,
    context: usize,
    chunks: Option<usize>,
    exact: bool,
    part_options: PartOptions,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let reference = reference.location()?;
    let models = models.iter().map(Source::location).collect::<PyResult<Vec<_>>>()?;
    let (task, options) = (task(text, context, chunks, None), options(exact));
    let read: Vec<String> = models.iter().chain([&reference]).cloned().collect();
    let keeper = part_options.keeper(&read)?;
    let found = run(py, &TaskOptions { progress, threads }, |progress| {
        let compare = CompareOptions {
            against: Against::Model(&reference),
            models: &models,
            options: &options,
            task: &task,
            worst: 0,
            save: None,
        };
        gguf_kit::eval::divergence(&compare, &mut keeper()?, &mut |_| (), progress)
    })?;
    found.models.iter().map(|model| divergence_fields(py, model)).collect()
}

/// Collects an importance matrix on a text.
#[pyfunction]
#[pyo3(signature = (source, text, context, chunks, dataset, output, part_options, progress, threads))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by keyword")]
pub fn collect_imatrix(
    py: Python<'_>,
    source: Source,
    text: String,
    context: usize,
    chunks: Option<usize>,
    dataset: String,
    output: bool,
    part_options: PartOptions,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Imatrix> {
    let (location, task) = (source.location()?, task(text, context, chunks, None));
    let keeper = part_options.keeper(std::slice::from_ref(&location))?;
    let collection = Collection { dataset, output, perplexity: false };
    let collect = ImatrixOptions { collection, skip: 0, resumed: None };
    let imatrix = run(py, &TaskOptions { progress, threads }, |progress| {
        let mut keeper = keeper()?;
        let options = options(true);
        let each: &mut OnImatrixChunk<'_> = &mut |_, _, _| Ok(());
        gguf_kit::eval::imatrix(&location, &options, &task, &collect, &mut keeper, each, progress)
    })?;
    Ok(Imatrix(imatrix))
}

/// Merges the parts of an evaluation: returns the metric and its fields for each model, or an importance matrix.
#[pyfunction]
pub fn merge_parts(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Py<PyAny>> {
    let metrics = |kind: &str, models: Vec<(String, Bound<'_, PyDict>)>| {
        Ok((kind, models).into_pyobject(py)?.into_any().unbind())
    };
    match quick(py, || gguf_kit::eval::merge(&paths))? {
        Merged::Perplexity(models) => {
            let fields = models.into_iter().map(|(name, found)| {
                let fields = PyDict::new(py);
                set_perplexity(&found, &fields)?;
                Ok((name, fields))
            });
            metrics("perplexity", fields.collect::<PyResult<_>>()?)
        }
        Merged::Divergence { models, found, .. } => {
            let fields = found.models.iter().map(|model| divergence_fields(py, model));
            let fields = fields.collect::<PyResult<Vec<_>>>()?;
            metrics("divergence", models.into_iter().zip(fields).collect())
        }
        Merged::Importance(matrix) => Ok(Bound::new(py, Imatrix(matrix))?.into_any().unbind()),
    }
}
