//! Encoding and decoding of arrays.

use std::num::NonZeroUsize;

use gguf::TensorType;
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::request;
use crate::task::{TaskOptions, run};

/// A tensor type, given by name or id.
#[derive(FromPyObject)]
pub enum TypeName {
    Id(u32),
    /// Case-insensitive.
    Name(String),
}

impl TypeName {
    pub fn get(&self) -> PyResult<TensorType> {
        match self {
            Self::Id(id) => Ok(TensorType::from_id(*id)),
            Self::Name(name) => name.parse().map_err(|error: gguf::UnknownTypeName| {
                request("request-invalid", error.to_string())
            }),
        }
    }
}

// The arrays are copied, since another thread may change them while the GIL is released.

/// Encodes rows of values.
#[pyfunction]
#[pyo3(signature = (values, row_len, ty, importance, progress, threads))]
pub fn encode<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f32>,
    row_len: usize,
    ty: TypeName,
    importance: Option<PyReadonlyArray1<'py, f32>>,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Bound<'py, PyAny>> {
    let ty = ty.get()?;
    let values = values.as_slice()?.to_vec();
    let importance = importance.map(|values| values.as_slice().map(<[f32]>::to_vec)).transpose()?;
    let bytes = run(py, &TaskOptions { progress, threads }, |progress| {
        gguf_kit::codec::encode(ty, &values, row_len, importance.as_deref(), progress)
    })?;
    Ok(bytes.into_pyarray(py).into_any())
}

/// Decodes bytes.
#[pyfunction]
#[pyo3(signature = (data, count, ty, progress, threads))]
pub fn decode<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    count: usize,
    ty: TypeName,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Bound<'py, PyAny>> {
    let ty = ty.get()?;
    let bytes = data.as_slice()?.to_vec();
    let values = run(py, &TaskOptions { progress, threads }, |progress| {
        let mut values = vec![0.0; count];
        gguf_kit::codec::decode(ty, &bytes, &mut values, progress)?;
        Ok(values)
    })?;
    Ok(values.into_pyarray(py).into_any())
}
