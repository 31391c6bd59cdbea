//! Verdict of a comparison.

use std::collections::BTreeMap;
use std::fmt;

use gguf::{TensorType, file_type};
use gguf_quant::Difference;
use gguf_store::Model;

use super::{Change, KeyChange, TensorChange};

/// Verdict of a comparison. Except the first three, verdicts are heuristics on error statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No differences.
    Same,
    /// Only keys differ.
    SameWeights,
    /// Equal values in other lossless types.
    SameValues,
    /// B is a quantization of A.
    Quantized {
        /// File type of B, or its most frequent type.
        to: String,
    },
    /// A is a quantization of B.
    Dequantized {
        /// File type of A, or its most frequent type.
        from: String,
    },
    /// Two quantizations, apparently of the same weights.
    TwoQuantizations,
    /// Equal shapes and similar weights.
    Finetune,
    /// Equal shapes, and weights that are not similar or cannot be decoded.
    SameShapes,
    /// At least half of the tensors have counterparts of the same shape.
    Related {
        /// Number of tensors with a counterpart of the same shape.
        common: usize,
        /// Number of those with the same bytes.
        same: usize,
    },
    /// Few common tensors.
    Different,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("same tensors and metadata"),
            Self::SameWeights => f.write_str("same weights, other metadata"),
            Self::SameValues => f.write_str("same weights, stored in other types without loss"),
            Self::Quantized { to } => write!(f, "B is A quantized to {to}"),
            Self::Dequantized { from } => write!(f, "A is B quantized to {from}"),
            Self::TwoQuantizations => f.write_str("two quantizations of the same weights"),
            Self::Finetune => {
                f.write_str("other weights of the same shapes, but alike: a finetune perhaps")
            }
            Self::SameShapes => f.write_str("other weights of the same shapes"),
            Self::Related { common, same } => write!(
                f,
                "other tensors, but {common} have the same names and shapes, {same} of them the \
                 same data"
            ),
            Self::Different => f.write_str("different models"),
        }
    }
}

/// Minimum cosine similarity of encodings of the same weights; that of 2-bit types is greater.
const MIN_COSINE_SAME: f64 = 0.8;
/// Minimum cosine similarity of a finetune; that of separate trainings is close to 0.
const MIN_COSINE_FINETUNE: f64 = 0.5;

pub(super) fn verdict(
    a: &Model,
    b: &Model,
    keys: &[KeyChange],
    tensors: &[TensorChange],
    same: usize,
    total: &Difference,
) -> Verdict {
    if tensors.is_empty() {
        return if keys.is_empty() { Verdict::Same } else { Verdict::SameWeights };
    }
    // Type in A, type in B, whether there are figures.
    let mut data = Vec::new();
    for tensor in tensors {
        if let Change::Data { a, b, figures } = &tensor.change {
            data.push((*a, *b, figures.is_some()));
        }
    }
    if data.len() < tensors.len() {
        let common = same + data.len();
        let most = a.tensors().len().max(b.tensors().len());
        let related = 2 * common >= most;
        return if related { Verdict::Related { common, same } } else { Verdict::Different };
    }
    let decoded = data.iter().all(|&(_, _, decoded)| decoded);
    if decoded && total.squared_error == 0.0 {
        return Verdict::SameValues;
    }
    // Quantization does not change the tensors that keep their type; training does.
    let trained = data.iter().any(|(a, b, _)| a == b && !a.is_quantized());
    if !trained && total.cosine() >= MIN_COSINE_SAME && total.elements > 0 {
        return match (
            data.iter().any(|(a, _, _)| a.is_quantized()),
            data.iter().any(|(_, b, _)| b.is_quantized()),
        ) {
            (true, false) => Verdict::Dequantized { from: target(a, data.iter().map(|d| d.0)) },
            (true, true) => Verdict::TwoQuantizations,
            (false, _) if narrower(&data) => {
                Verdict::Quantized { to: target(b, data.iter().map(|d| d.1)) }
            }
            (false, _) => Verdict::Dequantized { from: target(a, data.iter().map(|d| d.0)) },
        };
    }
    if total.elements > 0 && total.cosine() >= MIN_COSINE_FINETUNE {
        Verdict::Finetune
    } else {
        Verdict::SameShapes
    }
}

/// Whether the types of B have no more bits than those of A.
fn narrower(data: &[(TensorType, TensorType, bool)]) -> bool {
    let bits = |ty: TensorType| ty.block().map_or(0.0, |(len, bytes)| bytes as f64 / len as f64);
    data.iter().map(|&(a, b, _)| bits(b) - bits(a)).sum::<f64>() <= 0.0
}

/// Returns the quantization type of a model: its file type, or the most frequent type of the changed tensors.
fn target(model: &Model, types: impl Iterator<Item = TensorType>) -> String {
    let number = model.metadata().u64("general.file_type");
    if let Some(file_type) = number.and_then(file_type) {
        return file_type.name.to_owned();
    }
    let mut counts = BTreeMap::new();
    for ty in types {
        *counts.entry(ty).or_insert(0u64) += 1;
    }
    let most = counts.into_iter().max_by_key(|&(_, count)| count);
    most.map_or_else(String::new, |(ty, _)| ty.to_string())
}
