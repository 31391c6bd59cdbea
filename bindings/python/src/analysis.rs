//! Findings, digests and comparison of models.

use std::ops::ControlFlow;
use std::path::PathBuf;

use gguf_inspect::{Algorithm, HashOptions};
use gguf_kit::check::{CheckOptions, DataCheck};
use gguf_kit::json;
use pyo3::prelude::*;
use serde_json::Value as Json;

use crate::error::request;
use crate::json::to_python;
use crate::model::Source;
use crate::task::{TaskOptions, run};
use crate::template::renderer;

/// Returns all findings.
#[pyfunction]
#[pyo3(signature = (source, data, strict, tokenizer_against, with_, scan, template_of, progress))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by keyword")]
pub fn check<'py>(
    py: Python<'py>,
    source: Source,
    data: bool,
    strict: bool,
    tokenizer_against: Option<PathBuf>,
    with_: Option<PathBuf>,
    scan: bool,
    template_of: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (location, renderer) = (source.location()?, renderer(py)?);
    let with = with_.map(|path| Source::Location(path).location()).transpose()?;
    let data = if data { DataCheck::Always } else { DataCheck::Never };
    let options = CheckOptions {
        data,
        strict,
        tokenizer_against,
        with,
        scan,
        template_of,
        ..CheckOptions::default()
    };
    let found = run(py, &TaskOptions { progress, threads: None }, |progress| {
        let report = gguf_kit::check::check(&location, &options, &renderer, progress)?;
        Ok(Json::Array(report.findings().iter().map(json::finding).collect()))
    })?;
    to_python(py, &found)
}

/// Returns digests as (algorithm, tensor, digest).
#[pyfunction]
#[pyo3(signature = (source, algorithms, tensors, progress))]
pub fn hash(
    py: Python<'_>,
    source: Source,
    algorithms: Vec<String>,
    tensors: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<(String, Option<String>, String)>> {
    let opened = source.open(py)?;
    let parsed = algorithms.iter().map(|name| {
        let parsed = name.parse::<Algorithm>();
        parsed.map_err(|unknown| request("request-invalid", unknown.to_string()))
    });
    let options = HashOptions { algorithms: parsed.collect::<PyResult<_>>()?, per_tensor: tensors };
    run(py, &TaskOptions { progress, threads: None }, |progress| {
        let mut found = Vec::new();
        let mut sink = |entry: gguf_inspect::Entry| {
            // With an empty label, an entry of a tensor is named `:TENSOR`.
            let tensor = entry.name.strip_prefix(':').map(str::to_owned);
            found.push((entry.algorithm.to_string(), tensor, entry.digest));
            ControlFlow::Continue(())
        };
        gguf_inspect::hash(opened.model(), "", &options, progress, &mut sink)?;
        Ok(found)
    })
}

/// Compares two models.
#[pyfunction]
#[pyo3(signature = (a, b, progress))]
pub fn diff<'py>(
    py: Python<'py>,
    a: Source,
    b: Source,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (a, b) = (a.open(py)?, b.open(py)?);
    let found = run(py, &TaskOptions { progress, threads: None }, |progress| {
        Ok(json::diff(&gguf_inspect::diff(a.model(), b.model(), progress)?))
    })?;
    to_python(py, &found)
}
