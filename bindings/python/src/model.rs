//! `Model`: an open model, in however many files.

use std::sync::{Arc, PoisonError, RwLock};

use gguf_kit::Opened;
use gguf_kit::summary::Summary;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::{raise, request};
use crate::metadata::Metadata;
use crate::tensor::Tensor;
use crate::work::{How, quick, run};

/// What a model, its metadata and its tensors share: the open files, until somebody closes them.
#[derive(Clone)]
pub struct Held(Arc<RwLock<Option<Arc<Opened>>>>);

impl Held {
    fn new(opened: Opened) -> Self {
        Self(Arc::new(RwLock::new(Some(Arc::new(opened)))))
    }

    /// The model, if it is open.
    pub fn get(&self) -> PyResult<Arc<Opened>> {
        let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        held.clone().ok_or_else(|| request("closed", "the model is closed"))
    }

    fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// An open model.
#[pyclass(frozen, module = "gguf_kit._native")]
pub struct Model {
    held: Held,
    #[pyo3(get)]
    location: String,
}

#[pymethods]
impl Model {
    #[getter]
    fn metadata(&self) -> Metadata {
        Metadata(self.held.clone())
    }

    #[getter]
    fn architecture(&self) -> PyResult<Option<String>> {
        Ok(self.held.get()?.model().metadata().architecture().map(str::to_owned))
    }

    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.held.get()?.model().paths().collect::<Vec<_>>())
    }

    #[getter]
    fn nbytes(&self) -> PyResult<u64> {
        Ok(self.held.get()?.model().byte_len())
    }

    #[getter]
    fn byte_order(&self) -> PyResult<&'static str> {
        Ok(match self.held.get()?.model().order() {
            gguf::ByteOrder::Little => "little",
            gguf::ByteOrder::Big => "big",
        })
    }

    /// Bytes that came over the network.
    #[getter]
    fn transferred(&self) -> PyResult<Option<u64>> {
        Ok(self.held.get()?.transferred())
    }

    #[getter]
    fn tensors(&self) -> PyResult<Vec<Tensor>> {
        let count = self.held.get()?.model().tensors().len();
        Ok((0..count).map(|at| Tensor::new(self.held.clone(), at)).collect())
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.held.get()?.model().tensors().len())
    }

    fn __contains__(&self, name: &str) -> PyResult<bool> {
        let opened = self.held.get()?;
        Ok(opened.model().tensors().iter().any(|tensor| tensor.info.name == name))
    }

    fn __getitem__(&self, name: &str) -> PyResult<Tensor> {
        let opened = self.held.get()?;
        let at = opened.model().tensors().iter().position(|tensor| tensor.info.name == name);
        let at = at.ok_or_else(|| raise(gguf_kit::values::no_tensor(opened.model(), name)))?;
        Ok(Tensor::new(self.held.clone(), at))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.held.get()?;
        let names: Vec<_> = opened.model().tensors().iter().map(|t| t.info.name.clone()).collect();
        Ok(PyTuple::new(py, names)?.into_any().try_iter()?.into_any())
    }

    /// What a person wants to know of it first.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.held.get()?;
        let summary = quick(py, || {
            Ok(gguf_kit::json::summary(&Summary::of(opened.model()), &self.location, true))
        })?;
        crate::json::to_python(py, &summary)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.held.get().is_err()
    }

    fn close(&self) {
        self.held.close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        match self.held.get() {
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

    /// Opened anew by whoever takes it out of a pickle, such as another process.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        self.held.get()?;
        Ok((py.import("gguf_kit")?.getattr("open")?, (self.location.clone(),)))
    }
}

impl Model {
    /// The open model.
    pub fn get(&self) -> PyResult<Arc<Opened>> {
        self.held.get()
    }

    /// The words that it was opened by.
    pub fn location(&self) -> &str {
        &self.location
    }
}

/// What a caller names a model by: one that is open, or words.
#[derive(FromPyObject)]
pub enum Source {
    /// An open model.
    Open(Py<Model>),
    /// Words, or a path.
    Word(std::path::PathBuf),
}

impl Source {
    /// The words.
    pub fn word(&self) -> PyResult<String> {
        match self {
            Self::Open(model) => Ok(model.get().location.clone()),
            Self::Word(path) => word(path),
        }
    }

    /// The model, opened if it is not.
    pub fn open(&self, py: Python<'_>) -> PyResult<Arc<Opened>> {
        match self {
            Self::Open(model) => model.get().held.get(),
            Self::Word(path) => Ok(Arc::new(opened(py, &word(path)?)?)),
        }
    }
}

fn word(path: &std::path::Path) -> PyResult<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| request("request-invalid", "a location is no Unicode text"))
}

fn opened(py: Python<'_>, location: &str) -> PyResult<Opened> {
    run(py, &How::default(), |_| gguf_kit::open(location))
}

/// Opens a model.
#[pyfunction]
pub fn open(py: Python<'_>, location: std::path::PathBuf) -> PyResult<Model> {
    let location = word(&location)?;
    let held = Held::new(opened(py, &location)?);
    Ok(Model { held, location })
}

/// Every type that a tensor can have: name, number, elements and bytes of a block, whether it can be encoded
/// without importance, and whether there is a codec.
#[pyfunction]
pub fn tensor_types<'py>(py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
    gguf::TensorType::all()
        .filter_map(|ty| Some((ty, ty.traits()?)))
        .map(|(ty, row)| {
            let codec = gguf_quant::codec(ty);
            let fields = PyDict::new(py);
            fields.set_item("name", row.name)?;
            fields.set_item("id", row.id)?;
            fields.set_item("block_len", row.block_len)?;
            fields.set_item("block_bytes", row.block_bytes)?;
            fields.set_item("current", row.status == gguf::Status::Current)?;
            fields.set_item("codec", codec.is_some())?;
            fields
                .set_item("requires_importance", codec.is_some_and(|c| c.requires_importance()))?;
            Ok(fields)
        })
        .collect()
}
