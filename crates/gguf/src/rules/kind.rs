//! What a file is, as far as rules differ by it.

use crate::raw_header::RawHeader;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A whole model.
    Model,
    /// The first of several files of a model: all metadata, some tensors.
    FirstShard,
    /// A further file of a model: hardly any metadata, some tensors.
    OtherShard,
    /// Metadata without tensors.
    Vocabulary,
    /// What changes a model or goes with it: an adapter or a projector.
    Addition,
    /// Statistics for quantization.
    Imatrix,
}

impl FileKind {
    /// Told from the metadata and from whether there are tensors.
    pub fn of(draft: &RawHeader) -> Self {
        let metadata = &draft.metadata;
        match (metadata.str("general.type"), metadata.architecture()) {
            (Some("imatrix"), _) => Self::Imatrix,
            (Some("adapter" | "mmproj"), _) | (_, Some("clip")) => Self::Addition,
            _ if metadata.u64("split.no").is_some_and(|no| no > 0) => Self::OtherShard,
            _ if metadata.u64("split.count").is_some_and(|count| count > 1) => Self::FirstShard,
            _ if draft.tensors.is_empty() => Self::Vocabulary,
            _ => Self::Model,
        }
    }

    /// Whether such a file names an architecture.
    pub fn has_architecture(self) -> bool {
        !matches!(self, Self::Imatrix | Self::OtherShard)
    }
}
