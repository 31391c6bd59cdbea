//! Summary of a model.

mod layers;
mod origin;
mod vocabulary;

use std::collections::BTreeMap;

use gguf::TensorType;
use gguf_store::Model;
pub use layers::{Experts, Layers, PerLayer, Rope};
pub use origin::{BaseModel, Imatrix, Origin, Provenance};
pub use vocabulary::{SpecialToken, Template, Vocabulary};

/// Main facts of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// `general.name`.
    pub name: Option<String>,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// Format version of the first file.
    pub version: u32,
    /// Number of files.
    pub files: usize,
    /// Total file size in bytes.
    pub file_bytes: u64,
    /// Number of parameters.
    pub parameters: u64,
    /// Bytes of tensor data.
    pub data_bytes: u64,
    /// Number of tensors.
    pub tensors: usize,
    /// Number of tensors and bytes of each type.
    pub types: BTreeMap<TensorType, (u64, u64)>,
    /// Name of `general.file_type`.
    pub file_type: Option<&'static str>,
    /// `general.type`: model if missing, adapter, imatrix or mmproj.
    pub kind: Option<String>,
    /// Layers and hyperparameters.
    pub layers: Layers,
    /// Vocabulary and chat template.
    pub vocabulary: Vocabulary,
    /// Origin and license.
    pub origin: Origin,
}

impl Summary {
    /// Summarizes the header of a model.
    pub fn of(model: &Model) -> Self {
        let metadata = model.metadata();
        let text = |key: &str| metadata.str(key).map(str::to_owned);
        let file_type = metadata.u64("general.file_type").and_then(gguf::file_type);
        let mut summary = Self {
            name: text("general.name"),
            architecture: metadata.architecture().map(str::to_owned),
            version: model.parts().first().map_or(0, |part| part.header.version()),
            files: model.parts().len(),
            file_bytes: model.byte_len(),
            tensors: model.tensors().len(),
            file_type: file_type.map(|file_type| file_type.name),
            kind: text("general.type"),
            layers: Layers::of(metadata),
            vocabulary: Vocabulary::of(metadata),
            origin: Origin::of(metadata),
            ..Self::default()
        };
        for tensor in model.tensors().iter().map(|tensor| &tensor.info) {
            let bytes = tensor.byte_len().unwrap_or(0);
            let of_type = summary.types.entry(tensor.tensor_type).or_default();
            of_type.0 += 1;
            of_type.1 += bytes;
            summary.data_bytes += bytes;
            let elements = tensor.shape.elements().unwrap_or(0);
            summary.parameters = summary.parameters.saturating_add(elements);
        }
        summary
    }

    /// Returns the bits of tensor data per parameter; 0 without parameters.
    pub fn bits_per_weight(&self) -> f64 {
        bits_per_weight(self.data_bytes, self.parameters)
    }
}

/// Returns the bits per element; 0 without elements.
pub fn bits_per_weight(bytes: u64, elements: u64) -> f64 {
    if elements == 0 { 0.0 } else { bytes as f64 * 8.0 / elements as f64 }
}
