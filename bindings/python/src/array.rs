//! Bytes as arrays of numpy: the one file of this crate with `unsafe`.
#![allow(unsafe_code)]

use gguf::{Bytes, Shape, TensorType};
use numpy::ndarray::ArrayView1;
use numpy::{PyArray1, PyArrayDescr, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Keeps bytes, and with them a map, as long as an array looks at them.
#[pyclass(frozen, module = "gguf_kit._native")]
struct Keeper(Bytes);

/// The bytes as an array that cannot be written to, without a copy.
pub fn view(py: Python<'_>, bytes: Bytes) -> PyResult<Bound<'_, PyAny>> {
    let keeper = Bound::new(py, Keeper(bytes))?;
    // SAFETY: the bytes stay where they are as long as a clone of `Bytes` is there. The keeper has one that is never
    // taken out of it, and the array holds the keeper. Nobody writes through the array: it is made read-only here,
    // and numpy does not make an array writable whose owner is an object that lends no writable buffer. Arrays made
    // of this one (views, slices) hold it, and are read-only too.
    let array = unsafe {
        let bytes = &keeper.get().0;
        PyArray1::borrow_from_array(&ArrayView1::from(&bytes[..]), keeper.clone().into_any())
    };
    Ok(array.readwrite().make_nonwriteable().as_any().clone())
}

/// The type of numpy for numbers that it knows; none for blocks, nor for BF16.
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

/// Bytes of a tensor in its shape, slowest dimension first: numbers where numpy has their type, else bytes of rows.
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
