//! An importance matrix, and what of it is to be used.

use std::collections::HashMap;
use std::path::PathBuf;

use gguf::Value;
use gguf_quantize::imatrix::Imatrix;
use gguf_quantize::importance::Importance;

use crate::Error;

/// A file with an importance matrix, and the tensors that it is used for.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The file, GGUF or legacy `.dat`.
    pub file: PathBuf,
    /// Use it for the tensors whose name contains one of these only; for all if there is none.
    pub include: Vec<String>,
    /// Do not use it for tensors whose name contains one of these.
    pub exclude: Vec<String>,
}

impl Choice {
    /// Reads it into what a quantization is asked for: the weights, and the keys that say where they
    /// came from.
    ///
    /// # Errors
    /// As [`Choice::read`].
    pub fn add_to(&self, options: &mut gguf_quantize::QuantizeOptions) -> Result<(), Error> {
        let (importance, keys) = self.read()?;
        options.importance = Some(importance);
        options.overrides.extend(keys);
        Ok(())
    }

    /// The weights, and the keys that say in the output where they came from, as llama.cpp's
    /// quantizer writes them (it cuts names off at 127 bytes, which we do not).
    ///
    /// # Errors
    /// If the file cannot be read or is no importance matrix, or nothing of it is to be used.
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
                format!("nothing of {} is to be used", self.file.display()),
                "look at --include-weights and --exclude-weights",
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
