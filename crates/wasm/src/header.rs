//! Reading of headers in steps.

use std::path::Path;

use gguf::{Bytes, Gguf, HeaderStep, Limits, header_step};
use gguf_tokenizer::template::Linter;
use js_sys::Uint8Array;
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::chat_template::renderer;
use crate::error::Thrown;
use crate::model::Model;

/// Start of a file, which grows until it has the whole header.
#[wasm_bindgen]
pub struct Header {
    bytes: Bytes,
    file_len: u64,
    limits: Limits,
    /// Length up to which the caller reads.
    wanted: usize,
}

#[wasm_bindgen]
impl Header {
    /// Creates the empty start of a file of `file_len` bytes, of which at most `max_bytes` are read.
    #[wasm_bindgen(constructor)]
    pub fn new(file_len: f64, max_bytes: Option<f64>) -> Self {
        let mut limits = Limits::default();
        if let Some(bytes) = max_bytes {
            limits.header_bytes = bytes as u64;
        }
        Self { bytes: Bytes::new(), file_len: file_len as u64, limits, wanted: 0 }
    }

    /// Returns up to which byte of the file the caller should read next; `undefined` if the header is complete or invalid.
    ///
    /// # Errors
    /// If the header is longer than the limit.
    pub fn wanted(&mut self) -> Result<Option<f64>, Thrown> {
        Ok(match header_step(&self.bytes, self.file_len, self.limits)? {
            HeaderStep::Read(end) => {
                self.wanted = usize::try_from(end).unwrap_or_default();
                Some(end as f64)
            }
            HeaderStep::Done(end) => {
                self.bytes.truncate(end as usize);
                None
            }
        })
    }

    /// Appends the following bytes of the file.
    pub fn push(&mut self, bytes: &Uint8Array) {
        // The bytes have one owner, so this does not copy.
        let mut all = Vec::from(std::mem::take(&mut self.bytes));
        let present = all.len();
        // Exactly what was wanted last, in one allocation.
        all.reserve_exact(self.wanted.saturating_sub(present));
        all.resize(present + bytes.length() as usize, 0);
        bytes.copy_to(&mut all[present..]);
        self.bytes = all.into();
    }

    /// Returns the model.
    ///
    /// # Errors
    /// The first rule of the format that the file violates.
    pub fn model(&self) -> Result<Model, Thrown> {
        Ok(Model::new(Gguf::read_header(&self.bytes, self.file_len, self.limits)?, self.file_len))
    }

    /// Checks the header by the rules of `gguf check --no-data` for one file with this name, which may be empty. Returns a JSON
    /// document of the schema `check/2`.
    ///
    /// # Errors
    /// If the templates cannot be rendered here.
    pub fn check(&self, name: &str) -> Result<String, Thrown> {
        let (mut findings, header) = gguf_check::check_header(&self.bytes, self.file_len);
        if let Some(header) = &header {
            if !name.is_empty() {
                findings.extend(gguf_check::check_name(name, header));
            }
            let mut linter = Linter::new(renderer());
            findings.extend(gguf_scan::template_findings(&header.metadata, &mut linter)?);
            findings.extend(gguf_check::check_shards(&[(Path::new(name), header)]));
        }
        let findings: Vec<_> = findings.iter().map(gguf_check::json::finding).collect();
        let document = json!({
            "schema": "gguf-kit/check/2",
            "file": name,
            "data_read": false,
            "against": null,
            "findings": findings,
        });
        Ok(document.to_string())
    }
}

/// Returns the number of bytes that are read first.
#[wasm_bindgen(js_name = firstRead)]
pub fn first_read() -> f64 {
    gguf::FIRST_READ as f64
}
