//! Quantization sensitivity: the KL divergence that each type of each tensor causes. `gguf
//! sensitivity` writes the file, and a budget uses it.

use std::collections::BTreeMap;
use std::path::Path;

use gguf::{Error, Finding};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the file format.
pub const VERSION: u32 = 2;

/// KL divergence of models with single quantized tensors from the reference model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// Version of the file format: [`VERSION`].
    pub version: u32,
    /// Program that wrote the file.
    pub program: String,
    /// Reference model, as the user named it.
    pub model: String,
    /// Name of the text file.
    pub text: String,
    /// Number of tokens per chunk.
    pub chunk_size: usize,
    /// Number of chunks.
    pub chunks: usize,
    /// Number of evaluated tokens.
    pub tokens: usize,
    /// Importance matrix of the encoders, if any.
    pub imatrix: Option<String>,
    /// Measurements: each quantizes one group of tensors and nothing else.
    pub groups: Vec<Group>,
    /// Results by tensor name.
    pub tensors: BTreeMap<String, Tensor>,
}

/// Tensors that are quantized together in one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Common property of the tensors: a tensor name, a role, or a block.
    pub name: String,
    /// Names of the tensors.
    pub tensors: Vec<String>,
    /// Measured mean KL divergence in nats, by type name.
    pub measured: BTreeMap<String, f64>,
}

/// Sensitivity of one tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    /// Shape, fastest dimension first.
    pub shape: Vec<u64>,
    /// Mean KL divergence in nats by type name, measured or estimated, with only this tensor
    /// quantized.
    pub divergence: BTreeMap<String, f64>,
    /// Weight error by type name, in the unit of a [budget](crate::budget).
    pub error: BTreeMap<String, f64>,
}

impl Sensitivity {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns `sensitivity-invalid` if the file has another format, or an error if it cannot be
    /// read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|fault| Error::environment("read", path, fault))?;
        let invalid = |what: String| {
            let help = "make one with `gguf sensitivity`";
            Error::from(Finding::error("sensitivity-invalid", what).help(help)).in_file(path)
        };
        let read: Value = serde_json::from_slice(&bytes)
            .map_err(|fault| invalid(format!("is not a sensitivity file: {fault}")))?;
        // Fields depend on the version, so it comes first.
        if let Some(version) =
            read["version"].as_u64().filter(|&version| version != u64::from(VERSION))
        {
            return Err(invalid(format!("has version {version}; expected version {VERSION}")));
        }
        serde_json::from_value(read)
            .map_err(|fault| invalid(format!("is not a sensitivity file: {fault}")))
    }

    /// Serializes to JSON.
    pub fn to_json(&self) -> String {
        // Numbers and names always serialize.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// Returns the KL divergence of each type of a tensor, by type name.
    ///
    /// # Errors
    /// Returns `sensitivity-other-model` if there is no such tensor, or its shape differs.
    pub fn of(&self, name: &str, shape: &[u64]) -> Result<&BTreeMap<String, f64>, Error> {
        let other = |what: String| {
            let help = "they belong to another model; measure this model";
            Error::request("sensitivity-other-model", what, help)
        };
        match self.tensors.get(name) {
            None => Err(other(format!("the sensitivity file has no tensor `{name}`"))),
            Some(tensor) if tensor.shape != shape => Err(other(format!(
                "the sensitivity file has `{name}` with shape {:?}; expected {shape:?}",
                tensor.shape
            ))),
            Some(tensor) => Ok(&tensor.divergence),
        }
    }
}
