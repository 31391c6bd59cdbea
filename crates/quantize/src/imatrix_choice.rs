//! Selection of an importance matrix for a quantization.

use std::collections::HashMap;
use std::path::PathBuf;

use gguf::{Error, Value};

use crate::imatrix::Imatrix;
use crate::importance::Importance;
use crate::plan::QuantizeOptions;

/// An importance matrix file and the tensors that it applies to.
#[derive(Clone, Debug, Default)]
pub struct ImatrixChoice {
    /// GGUF or legacy `.dat` file.
    pub file: PathBuf,
    /// Applies only to tensors whose name contains one of these; to all if empty.
    pub include: Vec<String>,
    /// Does not apply to tensors whose name contains one of these.
    pub exclude: Vec<String>,
}

impl ImatrixChoice {
    /// Reads the matrix into options of a quantization, with the metadata keys that describe it.
    ///
    /// # Errors
    /// As [`ImatrixChoice::read`].
    pub fn add_to(&self, options: &mut QuantizeOptions) -> Result<(), Error> {
        let (importance, keys) = self.read()?;
        options.importance = Some(importance);
        options.overrides.extend(keys);
        Ok(())
    }

    /// Reads the importance, and the metadata keys that llama.cpp's quantizer writes (without truncating names to 127
    /// bytes).
    ///
    /// # Errors
    /// If the file is not an importance matrix or cannot be read; `imatrix-unused` if no tensor is selected.
    pub fn read(&self) -> Result<(Importance, Vec<(String, Value)>), Error> {
        let imatrix = Imatrix::open(&self.file)?;
        let contains_any = |name: &str, parts: &[String]| parts.iter().any(|p| name.contains(p));
        let weights: HashMap<_, _> = imatrix
            .entries
            .keys()
            .filter(|name| !contains_any(name, &self.exclude))
            .filter(|name| self.include.is_empty() || contains_any(name, &self.include))
            .filter_map(|name| Some((name.clone(), imatrix.importance(name)?.into())))
            .collect();
        if weights.is_empty() {
            return Err(Error::request(
                "imatrix-unused",
                format!("no entry of {} is selected", self.file.display()),
                "check --include-weights and --exclude-weights",
            ));
        }
        let key = |name: &str| format!("quantize.imatrix.{name}");
        let mut keys = vec![(key("file"), Value::from(self.file.display().to_string()))];
        if let Some(dataset) = imatrix.datasets.first() {
            keys.push((key("dataset"), Value::from(dataset.clone())));
        }
        keys.push((key("entries_count"), Value::U32(weights.len() as u32)));
        if imatrix.chunk_count > 0 {
            keys.push((key("chunks_count"), Value::U32(imatrix.chunk_count)));
        }
        Ok((Importance { weights, is_partial: false }, keys))
    }
}
