//! `Tensor`: a tensor of an open model.

use std::sync::Arc;

use gguf::{Bytes, Shape, TensorType};
use gguf_kit::Opened;
use gguf_kit::values::{Matrix, Numbers};
use gguf_store::ModelTensor;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::{shaped, view};
use crate::error::request;
use crate::handle::ModelHandle;
use crate::task::{TaskOptions, run};

/// A tensor of an open model.
#[pyclass(frozen, module = "gguf_kit._native")]
pub struct Tensor {
    handle: ModelHandle,
    index: usize,
}

/// Memory-mapped data of a tensor. It keeps the model open.
struct Mapped(Arc<Opened>, usize);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.0.model().tensors()[self.1].data().unwrap_or_default()
    }
}

impl Tensor {
    pub fn new(handle: ModelHandle, index: usize) -> Self {
        Self { handle, index }
    }

    fn with<T>(&self, read: impl FnOnce(&ModelTensor) -> T) -> PyResult<T> {
        Ok(read(&self.handle.get()?.model().tensors()[self.index]))
    }
}

/// A selection of rows.
#[derive(FromPyObject)]
enum Rows {
    One(i64),
    Slice(Py<pyo3::types::PySlice>),
    Many(Vec<i64>),
}

impl Rows {
    /// Returns the row indices; `count` is the number of rows.
    fn indices(&self, py: Python<'_>, count: u64) -> PyResult<Vec<u64>> {
        let number = |row: i64| {
            let from_end = if row < 0 { count as i64 } else { 0 };
            let number = u64::try_from(row + from_end).ok().filter(|number| *number < count);
            number.ok_or_else(|| {
                request(
                    "name-not-found",
                    format!("row {row} is out of range; the tensor has {count} rows"),
                )
            })
        };
        match self {
            Self::One(row) => Ok(vec![number(*row)?]),
            Self::Slice(slice) => {
                let found = slice.bind(py).indices(count as isize)?;
                let at = |i: usize| (found.start + i as isize * found.step) as u64;
                Ok((0..found.slicelength).map(at).collect())
            }
            Self::Many(rows) => rows.iter().map(|row| number(*row)).collect(),
        }
    }
}

#[pymethods]
impl Tensor {
    #[getter]
    fn name(&self) -> PyResult<String> {
        self.with(|tensor| tensor.info.name.clone())
    }

    /// Returns the shape with the slowest dimension first, as numpy does.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.with(|tensor| tensor.info.shape)?.iter().rev())
    }

    #[getter]
    #[pyo3(name = "type")]
    fn tensor_type(&self) -> PyResult<String> {
        self.with(|tensor| tensor.info.tensor_type.name().into_owned())
    }

    #[getter]
    fn nbytes(&self) -> PyResult<Option<u64>> {
        self.with(|tensor| tensor.info.byte_len())
    }

    #[getter]
    fn offset(&self) -> PyResult<u64> {
        self.with(|tensor| tensor.offset)
    }

    #[getter]
    fn shard(&self) -> PyResult<usize> {
        self.with(|tensor| tensor.shard)
    }

    /// Returns the stored data as a read-only array: memory-mapped if the file is local, else a copy.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.handle.get()?;
        let tensor = &opened.model().tensors()[self.index];
        let (ty, shape) = (tensor.info.tensor_type, tensor.info.shape);
        let bytes = match (tensor.data(), tensor.info.byte_len()) {
            (Some(_), _) => Bytes::from_owner(Mapped(opened.clone(), self.index)),
            (None, Some(len)) => run(py, &TaskOptions::default(), |_| {
                let mut bytes = vec![0; len as usize];
                tensor.read_at(&mut bytes, 0)?;
                Ok(bytes.into())
            })?,
            (None, None) => {
                return Err(request(
                    "tensor-size-unknown",
                    format!("the size of {ty} data is unknown"),
                ));
            }
        };
        shaped(view(py, bytes)?, ty, &shape)
    }

    /// Whether `data` is a memory map and not a copy.
    #[getter]
    fn is_mapped(&self) -> PyResult<bool> {
        self.with(|tensor| tensor.data().is_some())
    }

    /// Decodes all rows or a selection.
    #[pyo3(signature = (rows = None, *, progress = None))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        rows: Option<Rows>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.handle.get()?;
        let tensor = &opened.model().tensors()[self.index];
        let Some(rows) = rows else { return whole(py, tensor, progress) };
        let count =
            tensor.info.shape.elements().unwrap_or(0).checked_div(tensor.info.shape.row_len());
        let numbers = rows.indices(py, count.unwrap_or(0))?;
        let columns = tensor.info.shape.row_len() as usize;
        let options = TaskOptions { progress, threads: None };
        let values = run(py, &options, |progress| {
            let matrix = Matrix::of(tensor)?;
            progress.begin("decoding", numbers.len() as u64);
            let mut values = Vec::new();
            let mut row = Vec::new();
            for number in &numbers {
                matrix.read(*number, 0..matrix.columns(), &mut row)?;
                values.extend_from_slice(&row);
                progress.step(1)?;
            }
            Ok(values)
        })?;
        let array = values.into_pyarray(py).into_any();
        match rows {
            Rows::One(_) => Ok(array),
            _ => array.call_method1("reshape", ((numbers.len(), columns),)),
        }
    }

    fn __repr__(&self) -> String {
        let shown = self.with(|tensor| {
            let info = &tensor.info;
            let shape: Vec<_> = info.shape.iter().rev().collect();
            format!("<gguf_kit.Tensor {:?} {shape:?} {}>", info.name, info.tensor_type)
        });
        shown.unwrap_or_else(|_| "<gguf_kit.Tensor, closed>".into())
    }
}

/// Decodes the whole tensor in its shape.
fn whole<'py>(
    py: Python<'py>,
    tensor: &ModelTensor,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (ty, shape): (TensorType, Shape) = (tensor.info.tensor_type, tensor.info.shape);
    let len = shape.elements().unwrap_or(0) as usize;
    let options = TaskOptions { progress, threads: None };
    let values = run(py, &options, |progress| {
        // Check that the type can be decoded before reading.
        Matrix::of(tensor)?;
        let mut values = vec![0.0; len];
        match tensor.data() {
            Some(bytes) => gguf_kit::codec::decode(ty, bytes, &mut values, progress)?,
            None => {
                let mut bytes = vec![0; tensor.info.byte_len().unwrap_or(0) as usize];
                tensor.read_at(&mut bytes, 0)?;
                gguf_kit::codec::decode(ty, &bytes, &mut values, progress)?;
            }
        }
        Ok(values)
    })?;
    let array = values.into_pyarray(py);
    let dims: Vec<usize> = shape.iter().rev().map(|dim| *dim as usize).collect();
    Ok(array.reshape(dims)?.into_any())
}
