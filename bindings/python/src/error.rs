//! Conversion of errors to the Python exceptions of `gguf_kit/errors.py`.

use std::io::ErrorKind;

use gguf::{Error, Fault};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `errno` of a missing file on all platforms.
const ENOENT: i32 = 2;

/// Returns the exception of an error. Its class depends on the fault and the code.
pub fn raise(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    Python::attach(|py| {
        exception(py, &error).unwrap_or_else(|_| PyRuntimeError::new_err(error.to_string()))
    })
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    fields.set_item("code", error.code())?;
    fields.set_item("fault", fault(error.fault()))?;
    fields.set_item("message", error.to_string())?;
    if let Some(finding) = error.finding() {
        fields.set_item("key", finding.key.as_deref())?;
        fields.set_item("tensor", finding.tensor.as_deref())?;
        fields.set_item("offset", finding.offset)?;
        fields.set_item("help", &*finding.help)?;
    }
    match error {
        Error::InFile { path, .. } | Error::Exists(path) => fields.set_item("file", path)?,
        Error::Environment { path, source, .. } => {
            fields.set_item("file", path)?;
            // The library may have detected the missing file before a system call.
            let missing = (source.kind() == ErrorKind::NotFound).then_some(ENOENT);
            fields.set_item("errno", source.raw_os_error().or(missing))?;
        }
        _ => {}
    }
    let constructor = py.import("gguf_kit.errors")?.getattr("exception_of")?;
    Ok(PyErr::from_value(constructor.call((), Some(&fields))?))
}

fn fault(fault: Fault) -> &'static str {
    match fault {
        Fault::Environment => "environment",
        Fault::Input => "input",
        Fault::Caller => "request",
        Fault::Interrupted => "interrupted",
    }
}

/// Returns the exception of an invalid request.
pub fn request(code: &'static str, message: impl Into<Box<str>>) -> PyErr {
    raise(Error::request(code, message, ""))
}
