//! `Model`: an open model of one or more files.

use std::sync::Arc;

use gguf_kit::Opened;
use gguf_kit::summary::Summary;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::{raise, request};
use crate::handle::ModelHandle;
use crate::metadata::Metadata;
use crate::task::{TaskOptions, quick, run};
use crate::tensor::Tensor;

/// An open model.
#[pyclass(frozen, module = "gguf_kit._native")]
pub struct Model {
    handle: ModelHandle,
    #[pyo3(get)]
    location: String,
}

#[pymethods]
impl Model {
    #[getter]
    fn metadata(&self) -> Metadata {
        Metadata(self.handle.clone())
    }

    #[getter]
    fn architecture(&self) -> PyResult<Option<String>> {
        Ok(self.handle.get()?.model().metadata().architecture().map(str::to_owned))
    }

    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.handle.get()?.model().paths().collect::<Vec<_>>())
    }

    #[getter]
    fn nbytes(&self) -> PyResult<u64> {
        Ok(self.handle.get()?.model().byte_len())
    }

    #[getter]
    fn byte_order(&self) -> PyResult<&'static str> {
        Ok(match self.handle.get()?.model().order() {
            gguf::ByteOrder::Little => "little",
            gguf::ByteOrder::Big => "big",
        })
    }

    /// Returns the bytes fetched over the network.
    #[getter]
    fn transferred(&self) -> PyResult<Option<u64>> {
        Ok(self.handle.get()?.transferred())
    }

    #[getter]
    fn tensors(&self) -> PyResult<Vec<Tensor>> {
        let count = self.handle.get()?.model().tensors().len();
        Ok((0..count).map(|index| Tensor::new(self.handle.clone(), index)).collect())
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.handle.get()?.model().tensors().len())
    }

    fn __contains__(&self, name: &str) -> PyResult<bool> {
        let opened = self.handle.get()?;
        Ok(opened.model().tensors().iter().any(|tensor| tensor.info.name == name))
    }

    fn __getitem__(&self, name: &str) -> PyResult<Tensor> {
        let opened = self.handle.get()?;
        let index = opened.model().tensors().iter().position(|tensor| tensor.info.name == name);
        let index =
            index.ok_or_else(|| raise(gguf_kit::values::no_tensor(opened.model(), name)))?;
        Ok(Tensor::new(self.handle.clone(), index))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.handle.get()?;
        let names: Vec<_> = opened.model().tensors().iter().map(|t| t.info.name.clone()).collect();
        Ok(PyTuple::new(py, names)?.into_any().try_iter()?.into_any())
    }

    /// Returns the summary of `gguf inspect --json`.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.handle.get()?;
        let summary = quick(py, || {
            Ok(gguf_kit::json::summary(&Summary::of(opened.model()), &self.location, true))
        })?;
        crate::json::to_python(py, &summary)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.handle.get().is_err()
    }

    fn close(&self) {
        self.handle.close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        match self.handle.get() {
            Ok(opened) => {
                format!(
                    "<gguf_kit.Model {:?}, {} tensors>",
                    self.location,
                    opened.model().tensors().len()
                )
            }
            Err(_) => format!("<gguf_kit.Model {:?}, closed>", self.location),
        }
    }

    /// Pickles the location; unpickling opens the model again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        self.handle.get()?;
        Ok((py.import("gguf_kit")?.getattr("open")?, (self.location.clone(),)))
    }
}

impl Model {
    /// Returns the open model.
    pub fn get(&self) -> PyResult<Arc<Opened>> {
        self.handle.get()
    }

    /// Returns the path or URL.
    pub fn location(&self) -> &str {
        &self.location
    }
}

/// A model given by the caller.
#[derive(FromPyObject)]
pub enum Source {
    Open(Py<Model>),
    /// A path or URL.
    Location(std::path::PathBuf),
}

impl Source {
    /// Returns the path or URL.
    pub fn location(&self) -> PyResult<String> {
        match self {
            Self::Open(model) => Ok(model.get().location.clone()),
            Self::Location(path) => unicode(path),
        }
    }

    /// Returns the model, opening it if necessary.
    pub fn open(&self, py: Python<'_>) -> PyResult<Arc<Opened>> {
        match self {
            Self::Open(model) => model.get().handle.get(),
            Self::Location(path) => Ok(Arc::new(opened(py, &unicode(path)?)?)),
        }
    }
}

fn unicode(path: &std::path::Path) -> PyResult<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| request("request-invalid", "the location is not valid Unicode"))
}

fn opened(py: Python<'_>, location: &str) -> PyResult<Opened> {
    run(py, &TaskOptions::default(), |_| gguf_kit::open(location))
}

/// Opens a model.
#[pyfunction]
pub fn open(py: Python<'_>, location: std::path::PathBuf) -> PyResult<Model> {
    let location = unicode(&location)?;
    let handle = ModelHandle::new(opened(py, &location)?);
    Ok(Model { handle, location })
}

/// Returns all tensor types with the fields of `gguf_kit.TensorType`.
#[pyfunction]
pub fn tensor_types<'py>(py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
    gguf::TensorType::all()
        .filter_map(|ty| Some((ty, ty.traits()?)))
        .map(|(ty, traits)| {
            let codec = gguf_quant::codec(ty);
            let fields = PyDict::new(py);
            fields.set_item("name", traits.name)?;
            fields.set_item("id", traits.id)?;
            fields.set_item("block_len", traits.block_len)?;
            fields.set_item("block_bytes", traits.block_bytes)?;
            fields.set_item("current", traits.status == gguf::Status::Current)?;
            fields.set_item("codec", codec.is_some())?;
            fields
                .set_item("requires_importance", codec.is_some_and(|c| c.requires_importance()))?;
            Ok(fields)
        })
        .collect()
}
