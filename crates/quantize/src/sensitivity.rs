//! What each type of each tensor does to the predictions of a model: the file that `gguf sensitivity`
//! writes, and a budget goes by.

use std::collections::BTreeMap;
use std::path::Path;

use gguf::{Error, Finding};
use serde::{Deserialize, Serialize};

/// The form of the file.
pub const VERSION: u32 = 1;

/// How far types of single tensors take predictions from those of the original.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The form of the file: [`VERSION`].
    pub version: u32,
    /// The program that measured.
    pub program: String,
    /// The original, as the user named it.
    pub model: String,
    /// The file with the text.
    pub text: String,
    /// Tokens of a window.
    pub window_tokens: usize,
    /// Windows that were read.
    pub windows: usize,
    /// Tokens that were predicted.
    pub predictions: usize,
    /// The importance matrix that guided the encoders.
    pub imatrix: Option<String>,
    /// What was measured: tensors that were encoded together, and nothing else.
    pub groups: Vec<Group>,
    /// By the name of the tensor: what each type does.
    pub tensors: BTreeMap<String, Tensor>,
}

/// Tensors that were encoded together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What they have in common: the name of a tensor, a role, a block.
    pub name: String,
    /// Their names.
    pub tensors: Vec<String>,
    /// By the name of the type: the mean divergence that was measured, in nats.
    pub measured: BTreeMap<String, f64>,
}

/// What types of a tensor do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    /// Elements per dimension, fastest first.
    pub shape: Vec<u64>,
    /// By the name of the type: the mean divergence that it causes alone, in nats, measured or estimated.
    pub divergence: BTreeMap<String, f64>,
    /// By the name of the type: what it loses in the weights, in the unit of a [budget](crate::budget).
    pub error: BTreeMap<String, f64>,
}

impl Sensitivity {
    /// Reads a file.
    ///
    /// # Errors
    /// `sensitivity-invalid` if it is none of this form; if it cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|fault| Error::environment("read", path, fault))?;
        let invalid = |what: String| {
            let help = "make one with `gguf sensitivity`";
            Error::from(Finding::error("sensitivity-invalid", what).help(help)).in_file(path)
        };
        let read: Self = serde_json::from_slice(&bytes)
            .map_err(|fault| invalid(format!("holds no sensitivities: {fault}")))?;
        match read.version {
            VERSION => Ok(read),
            other => Err(invalid(format!("has form {other}, this program reads {VERSION}"))),
        }
    }

    /// The file.
    pub fn to_json(&self) -> String {
        // Figures and names are always JSON.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// What types of a tensor do, by name.
    ///
    /// # Errors
    /// `sensitivity-other-model` if there is no such tensor, or one of another shape.
    pub fn of(&self, name: &str, shape: &[u64]) -> Result<&BTreeMap<String, f64>, Error> {
        let other = |what: String| {
            let help = "they belong to another model; measure those of this one";
            Error::request("sensitivity-other-model", what, help)
        };
        match self.tensors.get(name) {
            None => Err(other(format!("the sensitivities have no tensor `{name}`"))),
            Some(tensor) if tensor.shape != shape => Err(other(format!(
                "the sensitivities are of a `{name}` with shape {:?}, not {shape:?}",
                tensor.shape
            ))),
            Some(tensor) => Ok(&tensor.divergence),
        }
    }
}
