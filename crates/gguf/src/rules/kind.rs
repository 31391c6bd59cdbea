//! Kinds of GGUF files, as far as rules differ by them.

use crate::raw_header::RawHeader;

/// Kind of a GGUF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A complete model.
    Model,
    /// First shard of a model: all metadata, some tensors.
    FirstShard,
    /// Later shard of a model: `split.*` metadata, some tensors.
    OtherShard,
    /// Metadata and vocabulary without tensors.
    Vocabulary,
    /// LoRA adapter or multimodal projector (mmproj).
    Sidecar,
    /// Importance matrix.
    Imatrix,
    /// Prompt cache of gguf-kit.
    PromptCache,
}

impl FileKind {
    /// Detects the kind from the metadata and the number of tensors.
    pub fn detect(header: &RawHeader) -> Self {
        let metadata = &header.metadata;
        match (metadata.str("general.type"), metadata.architecture()) {
            (Some("imatrix"), _) => Self::Imatrix,
            (Some("prompt_cache"), _) => Self::PromptCache,
            (Some("adapter" | "mmproj"), _) | (_, Some("clip")) => Self::Sidecar,
            _ if metadata.u64("split.no").is_some_and(|no| no > 0) => Self::OtherShard,
            _ if metadata.u64("split.count").is_some_and(|count| count > 1) => Self::FirstShard,
            _ if header.tensors.is_empty() => Self::Vocabulary,
            _ => Self::Model,
        }
    }

    /// Returns whether a file of this kind has `general.architecture`.
    pub fn has_architecture(self) -> bool {
        !matches!(self, Self::Imatrix | Self::PromptCache | Self::OtherShard)
    }
}
