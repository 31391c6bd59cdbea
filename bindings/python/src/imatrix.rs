//! `Imatrix`: an importance matrix.

use std::path::PathBuf;

use gguf_quantize::imatrix;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::output::overwrite;
use crate::task::quick;

#[pyclass(frozen, module = "gguf_kit._native")]
pub struct Imatrix(pub imatrix::Imatrix);

#[pymethods]
impl Imatrix {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self(quick(py, || imatrix::Imatrix::open(&path))?))
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.entries.keys().cloned().collect()
    }

    #[getter]
    fn datasets(&self) -> Vec<String> {
        self.0.datasets.clone()
    }

    #[getter]
    fn chunks(&self) -> u32 {
        self.0.chunk_count
    }

    fn __len__(&self) -> usize {
        self.0.entries.len()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.entries.contains_key(name)
    }

    /// Returns the importance of each column for the encoder.
    fn importance<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyArray1<f32>>> {
        self.0.importance(name).map(|weights| weights.into_pyarray(py))
    }

    #[pyo3(signature = (path, *, legacy = false, force = false))]
    fn save(&self, py: Python<'_>, path: PathBuf, legacy: bool, force: bool) -> PyResult<()> {
        let overwrite = overwrite(force);
        quick(py, || match legacy {
            true => self.0.write_legacy(&path, &overwrite),
            false => self.0.write_gguf(&path, &overwrite),
        })
    }
}
