//! What models know of a text.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_kit::eval::{
    Against, Collect, Collection, Compare, Cut, Divergence, Keeper, Perplexity, RunOptions, Spread,
    Task,
};
use gguf_kit::quantize::Part;
use gguf_kit::run::Options;
use gguf_runtime::CacheType;
use gguf_store::Existing;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::request;
use crate::imatrix::Imatrix;
use crate::model::Source;
use crate::part;
use crate::runner::arithmetic;
use crate::work::{How, run};

/// How text is read: with products in F32, so that only the quantization shows.
fn task(text: String, context: usize, windows: Option<usize>, stride: Option<usize>) -> Task {
    let run = RunOptions { cache_type: CacheType::F32, ..RunOptions::default() };
    Task { text, special: false, cut: Cut { len: context, windows, stride }, run }
}

fn options(exact: bool) -> Options {
    Options { arithmetic: arithmetic(exact), ..Options::default() }
}

/// The figures of a model alone.
pub fn fill<'py>(found: &Perplexity, fields: &Bound<'py, PyDict>) -> PyResult<()> {
    fields.set_item("perplexity", found.value())?;
    fields.set_item("perplexity_error", found.error())?;
    fields.set_item("mean_nll", found.surprise.value())?;
    fields.set_item("tokens", found.surprise.count)?;
    fields.set_item("windows", found.windows)
}

/// The figures of a model beside its reference.
pub fn figures<'py>(py: Python<'py>, found: &Divergence) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fill(&found.model, &fields)?;
    let spread = Spread::new(&found.divergences);
    fields.set_item("divergence", found.divergence.value())?;
    fields.set_item("divergence_error", found.divergence.error())?;
    fields.set_item("divergence_median", spread.at(0.5))?;
    fields.set_item("divergence_max", spread.at(1.0))?;
    fields.set_item("same_top", found.same_top().0)?;
    fields.set_item("reference_perplexity", found.reference.value())?;
    Ok(fields)
}

/// Where what windows give is kept: a file, and which part of the windows it is of.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Kept {
    part: Option<String>,
    keep: Option<PathBuf>,
    resume: bool,
    force: bool,
}

impl Kept {
    /// What keeps a run that reads these models.
    fn keeper(self, models: &[String]) -> PyResult<impl FnOnce() -> Result<Keeper, Error> + use<>> {
        let Self { part, keep, resume, force } = self;
        let share = part::parse(part)?;
        if keep.is_none() && (share.is_some() || resume) {
            return Err(request("request-invalid", "a part is kept in a file: give `keep`"));
        }
        let existing = if force { Existing::Replace } else { Existing::Refuse };
        let models = models.to_vec();
        Ok(move || match keep {
            Some(path) => {
                let share = share.unwrap_or(Part::WHOLE);
                Keeper::new(share, &path, existing, models.iter().map(Path::new), resume)
            }
            None => Ok(Keeper::default()),
        })
    }
}

/// How well a model predicts a text.
#[pyfunction]
#[pyo3(signature = (source, text, context, windows, stride, exact, kept, progress, threads))]
#[allow(clippy::too_many_arguments)]
pub fn perplexity<'py>(
    py: Python<'py>,
    source: Source,
    text: String,
    context: usize,
    windows: Option<usize>,
    stride: Option<usize>,
    exact: bool,
    kept: Kept,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Bound<'py, PyDict>> {
    let (word, task) = (source.word()?, task(text, context, windows, stride));
    let keeper = kept.keeper(std::slice::from_ref(&word))?;
    let found = run(py, &How { progress, threads }, |progress| {
        let (mut keeper, mut each) = (keeper()?, |_: &Perplexity| ());
        gguf_kit::eval::perplexity(
            &word,
            &options(exact),
            &task,
            None,
            &mut keeper,
            &mut each,
            progress,
        )
    })?;
    let fields = PyDict::new(py);
    fill(&found, &fields)?;
    Ok(fields)
}

/// How far models are from the one that they were made of.
#[pyfunction]
#[pyo3(signature = (reference, models, text, context, windows, exact, kept, progress, threads))]
#[allow(clippy::too_many_arguments)]
pub fn divergence<'py>(
    py: Python<'py>,
    reference: Source,
    models: Vec<Source>,
    text: String,
    context: usize,
    windows: Option<usize>,
    exact: bool,
    kept: Kept,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let reference = reference.word()?;
    let models = models.iter().map(Source::word).collect::<PyResult<Vec<_>>>()?;
    let (task, options) = (task(text, context, windows, None), options(exact));
    let read: Vec<String> = models.iter().chain([&reference]).cloned().collect();
    let keeper = kept.keeper(&read)?;
    let found = run(py, &How { progress, threads }, |progress| {
        let compare = Compare {
            against: Against::Model(&reference),
            models: &models,
            options: &options,
            task: &task,
            worst: 0,
            save: None,
        };
        gguf_kit::eval::divergence(&compare, &mut keeper()?, &mut |_| (), progress)
    })?;
    found.models.iter().map(|one| figures(py, one)).collect()
}

/// How much the columns of each matrix matter for a text.
#[pyfunction]
#[pyo3(signature = (source, text, context, windows, dataset, output, kept, progress, threads))]
#[allow(clippy::too_many_arguments)]
pub fn collect_imatrix(
    py: Python<'_>,
    source: Source,
    text: String,
    context: usize,
    windows: Option<usize>,
    dataset: String,
    output: bool,
    kept: Kept,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Imatrix> {
    let (word, task) = (source.word()?, task(text, context, windows, None));
    let keeper = kept.keeper(std::slice::from_ref(&word))?;
    let collect = Collect { collection: Collection { dataset, output }, skip: 0 };
    let made = run(py, &How { progress, threads }, |progress| {
        let mut keeper = keeper()?;
        let each = &mut |_: usize, _: &dyn Fn() -> gguf_quantize::imatrix::Imatrix| Ok(());
        gguf_kit::eval::imatrix(&word, &options(true), &task, &collect, &mut keeper, each, progress)
    })?;
    Ok(Imatrix(made))
}
