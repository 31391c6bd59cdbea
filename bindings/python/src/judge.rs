//! What models know of a text.

use std::num::NonZeroUsize;

use gguf_kit::eval::{
    Against, Collect, Collection, Compare, Cut, Keeper, Perplexity, RunOptions, Spread, Task,
};
use gguf_kit::run::Options;
use gguf_runtime::CacheType;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::imatrix::Imatrix;
use crate::model::Source;
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

fn fill<'py>(found: &Perplexity, fields: &Bound<'py, PyDict>) -> PyResult<()> {
    fields.set_item("perplexity", found.value())?;
    fields.set_item("perplexity_error", found.error())?;
    fields.set_item("mean_nll", found.surprise.value())?;
    fields.set_item("tokens", found.surprise.count)?;
    fields.set_item("windows", found.windows)
}

/// How well a model predicts a text.
#[pyfunction]
#[pyo3(signature = (source, text, context, windows, stride, exact, progress, threads))]
#[allow(clippy::too_many_arguments)]
pub fn perplexity<'py>(
    py: Python<'py>,
    source: Source,
    text: String,
    context: usize,
    windows: Option<usize>,
    stride: Option<usize>,
    exact: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Bound<'py, PyDict>> {
    let (word, task) = (source.word()?, task(text, context, windows, stride));
    let found = run(py, &How { progress, threads }, |progress| {
        let (mut keeper, mut each) = (Keeper::default(), |_: &Perplexity| ());
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
#[pyo3(signature = (reference, models, text, context, windows, exact, progress, threads))]
#[allow(clippy::too_many_arguments)]
pub fn divergence<'py>(
    py: Python<'py>,
    reference: Source,
    models: Vec<Source>,
    text: String,
    context: usize,
    windows: Option<usize>,
    exact: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let reference = reference.word()?;
    let models = models.iter().map(Source::word).collect::<PyResult<Vec<_>>>()?;
    let (task, options) = (task(text, context, windows, None), options(exact));
    let found = run(py, &How { progress, threads }, |progress| {
        let compare = Compare {
            against: Against::Model(&reference),
            models: &models,
            options: &options,
            task: &task,
            worst: 0,
            save: None,
        };
        gguf_kit::eval::divergence(&compare, &mut Keeper::default(), &mut |_| (), progress)
    })?;
    found
        .models
        .iter()
        .map(|one| {
            let fields = PyDict::new(py);
            fill(&one.model, &fields)?;
            let spread = Spread::new(&one.divergences);
            fields.set_item("divergence", one.divergence.value())?;
            fields.set_item("divergence_error", one.divergence.error())?;
            fields.set_item("divergence_median", spread.at(0.5))?;
            fields.set_item("divergence_max", spread.at(1.0))?;
            fields.set_item("same_top", one.same_top().0)?;
            fields.set_item("reference_perplexity", one.reference.value())?;
            Ok(fields)
        })
        .collect()
}

/// How much the columns of each matrix matter for a text.
#[pyfunction]
#[pyo3(signature = (source, text, context, windows, dataset, output, progress, threads))]
#[allow(clippy::too_many_arguments)]
pub fn collect_imatrix(
    py: Python<'_>,
    source: Source,
    text: String,
    context: usize,
    windows: Option<usize>,
    dataset: String,
    output: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Imatrix> {
    let (word, task) = (source.word()?, task(text, context, windows, None));
    let collect = Collect { collection: Collection { dataset, output }, skip: 0 };
    let made = run(py, &How { progress, threads }, |progress| {
        let mut keeper = Keeper::default();
        let each = &mut |_: usize, _: &dyn Fn() -> gguf_quantize::imatrix::Imatrix| Ok(());
        gguf_kit::eval::imatrix(&word, &options(true), &task, &collect, &mut keeper, each, progress)
    })?;
    Ok(Imatrix(made))
}
