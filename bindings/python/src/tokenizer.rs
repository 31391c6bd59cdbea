//! `Tokenizer`: encodes text to token ids and decodes them.

use gguf_tokenizer::{Compat, DecodeOptions, EncodeOptions, TokenizerOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::model::Source;
use crate::task::quick;

/// The tokenizer of a model or of a Hugging Face checkpoint.
#[pyclass(frozen, module = "gguf_kit._native")]
pub struct Tokenizer {
    tokenizer: gguf_tokenizer::Tokenizer,
    /// Notes about differences from the original tokenizer.
    #[pyo3(get)]
    notes: Vec<String>,
}

#[pymethods]
impl Tokenizer {
    #[new]
    #[pyo3(signature = (source, *, llama_cpp = false, normalize = None))]
    fn new(
        py: Python<'_>,
        source: Source,
        llama_cpp: bool,
        normalize: Option<bool>,
    ) -> PyResult<Self> {
        let compat = if llama_cpp { Compat::LlamaCpp } else { Compat::Original };
        let options = TokenizerOptions { compat, normalize };
        let (tokenizer, notes) = match &source {
            Source::Open(_) => {
                let opened = source.open(py)?;
                let read =
                    || gguf_tokenizer::Tokenizer::from_metadata(opened.model().metadata(), options);
                (quick(py, read)?, Vec::new())
            }
            Source::Location(_) => {
                let location = source.location()?;
                quick(py, || gguf_kit::tokens::open(&location, options))?
            }
        };
        Ok(Self { tokenizer, notes })
    }

    fn __len__(&self) -> usize {
        self.tokenizer.len()
    }

    #[pyo3(signature = (text, *, add_special = true, parse_special = true))]
    fn encode(
        &self,
        py: Python<'_>,
        text: &str,
        add_special: bool,
        parse_special: bool,
    ) -> PyResult<Vec<u32>> {
        quick(py, || Ok(self.tokenizer.encode(text, EncodeOptions { add_special, parse_special })))
    }

    #[pyo3(signature = (texts, *, add_special = true, parse_special = true))]
    fn encode_batch(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        add_special: bool,
        parse_special: bool,
    ) -> PyResult<Vec<Vec<u32>>> {
        quick(py, || {
            Ok(self.tokenizer.encode_batch(&texts, EncodeOptions { add_special, parse_special }))
        })
    }

    /// Invalid UTF-8 becomes U+FFFD.
    #[pyo3(signature = (ids, *, special = false))]
    fn decode(&self, py: Python<'_>, ids: Vec<u32>, special: bool) -> Py<PyString> {
        let bytes = self.tokenizer.decode(&ids, DecodeOptions { special });
        PyString::new(py, &String::from_utf8_lossy(&bytes)).unbind()
    }

    #[pyo3(signature = (ids, *, special = false))]
    fn decode_bytes(&self, py: Python<'_>, ids: Vec<u32>, special: bool) -> Py<PyBytes> {
        PyBytes::new(py, &self.tokenizer.decode(&ids, DecodeOptions { special })).unbind()
    }

    fn token_bytes(&self, py: Python<'_>, id: u32) -> Option<Py<PyBytes>> {
        self.tokenizer.token_bytes(id).map(|bytes| PyBytes::new(py, &bytes).unbind())
    }
}
