//! `Metadata`: read-only mapping of keys to values.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::handle::ModelHandle;
use crate::value::{to_python, type_name};

#[pyclass(frozen, mapping, module = "gguf_kit._native")]
pub struct Metadata(pub ModelHandle);

#[pymethods]
impl Metadata {
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.0.get()?.model().metadata().len())
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let opened = self.0.get()?;
        Ok(key.extract::<String>().is_ok_and(|key| opened.model().metadata().get(&key).is_some()))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.0.get()?;
        let value = opened.model().metadata().get(key);
        to_python(py, value.ok_or_else(|| PyKeyError::new_err(key.to_owned()))?)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyTuple::new(py, self.keys()?)?.into_any().try_iter()?.into_any())
    }

    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let opened = self.0.get()?;
        match opened.model().metadata().get(key) {
            Some(value) => to_python(py, value).map(Some),
            None => Ok(default),
        }
    }

    fn keys(&self) -> PyResult<Vec<String>> {
        Ok(self.0.get()?.model().metadata().iter().map(|(key, _)| key.to_owned()).collect())
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let opened = self.0.get()?;
        opened.model().metadata().iter().map(|(_, value)| to_python(py, value)).collect()
    }

    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let opened = self.0.get()?;
        let entries = opened.model().metadata().iter();
        entries.map(|(key, value)| Ok((key.to_owned(), to_python(py, value)?))).collect()
    }

    /// Returns the type of a value, such as `u32` or `str[]`.
    fn type_of(&self, key: &str) -> PyResult<String> {
        let opened = self.0.get()?;
        let value = opened.model().metadata().get(key);
        Ok(type_name(value.ok_or_else(|| PyKeyError::new_err(key.to_owned()))?))
    }

    fn __repr__(&self) -> String {
        self.__len__().map_or("<gguf_kit.Metadata, closed>".into(), |len| {
            format!("<gguf_kit.Metadata, {len} keys>")
        })
    }
}
