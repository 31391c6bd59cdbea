//! `Header`: offsets of keys and tensors in a file, for `gguf_kit.compat`.

use std::path::PathBuf;

use gguf::{ByteOrder, Gguf, Value};
use gguf_store::LocalFile;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::task::quick;
use crate::value::to_python;

/// The header of one file.
#[pyclass(frozen, module = "gguf_kit._native")]
pub struct Header(Gguf);

/// A key: name, start, start of the value, end, id of the value type, id of the element type.
type Entry = (String, u64, u64, u64, u32, Option<u32>);

/// A tensor: name, dimensions, type id, offset in the data section, offset of its tensor info.
type Tensor = (String, Vec<u64>, u32, u64, u64);

#[pymethods]
impl Header {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let read = || {
            let file = LocalFile::open(&path)?;
            Gguf::read(file.mapped()).map_err(|error| error.in_file(&path))
        };
        Ok(Self(quick(py, read)?))
    }

    #[getter]
    fn version(&self) -> u32 {
        self.0.header().version()
    }

    #[getter]
    fn is_big_endian(&self) -> bool {
        self.0.header().order() == ByteOrder::Big
    }

    #[getter]
    fn alignment(&self) -> u64 {
        self.0.header().alignment().get()
    }

    #[getter]
    fn data_start(&self) -> u64 {
        self.0.data_start()
    }

    fn entries(&self) -> Vec<Entry> {
        let spans = self.0.spans();
        let ends = spans.entries.iter().skip(1).map(|next| next.start);
        let ends = ends.chain([spans.tensors.first().copied().unwrap_or(spans.end)]);
        let entries = self.0.metadata().iter().zip(&spans.entries).zip(ends);
        let entry = |((key, value), span): ((&str, &Value), &gguf::EntrySpan), end: u64| {
            let elements = value.as_array().map(|array| array.element_type().id());
            (key.to_owned(), span.start, span.value, end, value.value_type().id(), elements)
        };
        entries.map(|(key, end)| entry(key, end)).collect()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let starts = &self.0.spans().tensors;
        let tensor = |(info, start): (&gguf::TensorInfo, &u64)| {
            let ty = info.tensor_type.id();
            (info.name.clone(), info.shape.to_vec(), ty, info.offset, *start)
        };
        self.0.tensors().iter().zip(starts).map(tensor).collect()
    }

    /// Returns the value of a key by its index.
    fn value<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.metadata().iter().nth(index).map(|(_, value)| to_python(py, value)).transpose()
    }

    /// Returns the offset of each element of an array of strings; an element begins with its length.
    fn string_starts(&self, index: usize) -> Vec<u64> {
        let Some((_, Value::Array(array))) = self.0.metadata().iter().nth(index) else {
            return Vec::new();
        };
        // The elements follow the element type and the count.
        let mut next = self.0.spans().entries[index].value + 12;
        let starts = array.strings().into_iter().flatten().map(|string| {
            let start = next;
            next += 8 + string.len() as u64;
            start
        });
        starts.collect()
    }
}

/// Packs strings like the elements of an array: each length, then the bytes.
#[pyfunction]
pub fn pack_strings<'py>(
    py: Python<'py>,
    strings: &Bound<'py, PyAny>,
    big_endian: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    for string in strings.try_iter()? {
        let string = string?;
        let bytes = match string.is_instance_of::<PyString>() {
            true => string.extract::<String>()?.into_bytes(),
            false => string.extract::<Vec<u8>>()?,
        };
        let len = bytes.len() as u64;
        out.extend(if big_endian { len.to_be_bytes() } else { len.to_le_bytes() });
        out.extend(bytes);
    }
    Ok(PyBytes::new(py, &out))
}
