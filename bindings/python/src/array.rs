//! Bytes as numpy arrays. This is the only file of the crate with `unsafe`.
#![allow(unsafe_code)]

use gguf::{Bytes, Shape, TensorType};
use numpy::ndarray::ArrayView1;
use numpy::{PyArray1, PyArrayDescr, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Owns the bytes of an array, and with them the memory map.
#[pyclass(frozen, module = "gguf_kit._native")]
struct ArrayOwner(Bytes);

/// Returns a read-only array of the bytes without a copy.
pub fn view(py: Python<'_>, bytes: Bytes) -> PyResult<Bound<'_, PyAny>> {
    let owner = Bound::new(py, ArrayOwner(bytes))?;
    // SAFETY: the bytes are valid and do not move while a clone of `Bytes` exists. The owner never gives up its clone,
    // and the array holds a reference to the owner. The array is read-only, and numpy refuses to make it writable,
    // since its owner does not provide a writable buffer. Views and slices hold this array and are read-only too.
    let array = unsafe {
        let bytes = &owner.get().0;
        PyArray1::borrow_from_array(&ArrayView1::from(&bytes[..]), owner.clone().into_any())
    };
    Ok(array.readwrite().make_nonwriteable().as_any().clone())
}

/// Returns the numpy dtype of a tensor type; `None` for BF16 and quantized types.
pub fn plain(ty: TensorType) -> Option<&'static str> {
    Some(match ty {
        TensorType::F32 => "<f4",
        TensorType::F16 => "<f2",
        TensorType::F64 => "<f8",
        TensorType::I8 => "i1",
        TensorType::I16 => "<i2",
        TensorType::I32 => "<i4",
        TensorType::I64 => "<i8",
        _ => return None,
    })
}

/// Reshapes the bytes of a tensor, slowest dimension first. Types without a numpy dtype stay bytes, with the bytes of a
/// row as the last dimension.
pub fn shaped<'py>(
    bytes: Bound<'py, PyAny>,
    ty: TensorType,
    shape: &Shape,
) -> PyResult<Bound<'py, PyAny>> {
    let py = bytes.py();
    let mut dims: Vec<u64> = shape.iter().rev().copied().collect();
    let typed = match plain(ty) {
        Some(name) => bytes.call_method1("view", (PyArrayDescr::new(py, name)?,))?,
        None => {
            let row_bytes = ty.byte_len(&[shape.row_len()]).unwrap_or(0);
            match dims.last_mut() {
                Some(last) => *last = row_bytes,
                None => dims.push(row_bytes),
            }
            bytes
        }
    };
    typed.call_method1("reshape", (PyTuple::new(py, dims)?,))
}
