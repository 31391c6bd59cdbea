//! Editing of metadata and tensor names.

use std::path::PathBuf;

use gguf_kit::edit::{self as edits, Changes};
use gguf_kit::key_value::KeyValue;
use gguf_kit::{json, open};
use gguf_store::edit::EditOutcome;
use pyo3::prelude::*;

use crate::error::request;
use crate::json::to_python;
use crate::output::overwrite;
use crate::task::{TaskOptions, run};
use crate::template::renderer;

/// Edits a file in place or writes an edited copy. Returns the path, how it was written, and the changed keys.
#[pyfunction]
#[pyo3(signature = (path, set, remove, rename, rename_tensor, output, force, dry_run, progress))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by keyword")]
pub fn edit<'py>(
    py: Python<'py>,
    path: PathBuf,
    set: Vec<(String, Option<String>, String)>,
    remove: Vec<String>,
    rename: Vec<(String, String)>,
    rename_tensor: Vec<(String, String)>,
    output: Option<PathBuf>,
    force: bool,
    dry_run: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, &'static str, Bound<'py, PyAny>)> {
    let set = set.iter().map(|(key, ty, text)| {
        let parsed = KeyValue::new(key, ty.as_deref(), text);
        parsed.map_err(|error| request("edit-refused", format!("{key}: {error}")))
    });
    let set = set.collect::<PyResult<_>>()?;
    let changes = Changes { set, remove, rename, rename_tensor, ..Changes::default() };
    let renderer = renderer(py)?;
    let (path, outcome, changed) = run(py, &TaskOptions { progress, threads: None }, |progress| {
        let opened = open(&path.to_string_lossy())?;
        let changed = json::edited_keys(&edits::preview(opened.model(), &changes, &renderer)?);
        if dry_run {
            return Ok((path, "unchanged", changed));
        }
        let Some(output) = output else {
            drop(opened);
            let (path, saved) = edits::in_place(&path, &changes, &renderer, progress)?;
            let outcome = match saved {
                EditOutcome::Unchanged => "unchanged",
                EditOutcome::InPlace => "in place",
                EditOutcome::Rebuilt => "rebuilt",
            };
            return Ok((path, outcome, changed));
        };
        let rewritten = edits::rewrite(opened.model(), &changes, &renderer)?;
        let inputs = opened.files().map(PathBuf::from).chain(rewritten.files);
        let overwrite = overwrite(force).protecting(inputs.collect::<Vec<_>>());
        rewritten.job.write(&output, &overwrite, progress)?;
        Ok((output, "rebuilt", changed))
    })?;
    Ok((path, outcome, to_python(py, &changed)?))
}
