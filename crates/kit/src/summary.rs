//! What a person wants to know of a model first.

use std::collections::BTreeMap;

use gguf::{Metadata, TensorType, ValueType, schema};
use gguf_store::Model;

/// A model in a few facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// `general.name`.
    pub name: Option<String>,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// Version of the format, of the first file.
    pub version: u32,
    /// Files it is stored in.
    pub files: usize,
    /// Bytes of all files.
    pub file_bytes: u64,
    /// Elements of all tensors.
    pub parameters: u64,
    /// Bytes of all tensors.
    pub data_bytes: u64,
    /// Tensors.
    pub tensors: usize,
    /// Per type: tensors and bytes.
    pub types: BTreeMap<TensorType, (u64, u64)>,
    /// The name that `general.file_type` stands for.
    pub file_type: Option<&'static str>,
    /// Longest context, in tokens.
    pub context_length: Option<u64>,
    /// Blocks, which some call layers.
    pub block_count: Option<u64>,
    /// Elements of a token's embedding.
    pub embedding_length: Option<u64>,
    /// `tokenizer.ggml.model`.
    pub tokenizer: Option<String>,
    /// `tokenizer.ggml.pre`.
    pub pre_tokenizer: Option<String>,
    /// Tokens of the vocabulary.
    pub tokens: Option<u64>,
}

impl Summary {
    /// The facts of `model`; nothing but its header is read.
    pub fn of(model: &Model) -> Self {
        let metadata = model.metadata();
        let text = |key: &str| metadata.str(key).map(str::to_owned);
        let of_architecture =
            |key: &str| metadata.u64(&format!("{}.{key}", metadata.architecture()?));
        let file_type = metadata.u64("general.file_type").and_then(schema::file_type);
        let mut summary = Self {
            name: text("general.name"),
            architecture: metadata.architecture().map(str::to_owned),
            version: model.parts().first().map_or(0, |part| part.header.version()),
            files: model.parts().len(),
            file_bytes: model.byte_len(),
            tensors: model.tensors().len(),
            file_type: file_type.map(|file_type| file_type.name),
            context_length: of_architecture("context_length"),
            block_count: of_architecture("block_count"),
            embedding_length: of_architecture("embedding_length"),
            tokenizer: text("tokenizer.ggml.model"),
            pre_tokenizer: text("tokenizer.ggml.pre"),
            tokens: tokens(metadata),
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

    /// Bits of tensor data per parameter; 0 without parameters.
    pub fn bits_per_weight(&self) -> f64 {
        bits_per_weight(self.data_bytes, self.parameters)
    }
}

/// Bits per element of `bytes` that hold `elements`; 0 if there are none.
pub fn bits_per_weight(bytes: u64, elements: u64) -> f64 {
    if elements == 0 { 0.0 } else { bytes as f64 * 8.0 / elements as f64 }
}

fn tokens(metadata: &Metadata) -> Option<u64> {
    let tokens = metadata.array("tokenizer.ggml.tokens")?;
    (tokens.element_type() == ValueType::String).then_some(tokens.len())
}
