//! Comparison of two models: metadata, tensors, and a verdict.

mod keys;
mod verdict;
mod weights;

use std::collections::HashSet;

use gguf::{Error, Shape, TensorType};
use gguf_quant::Difference;
use gguf_store::{Model, Progress};
pub use keys::{Detail, ElementChange, KeyChange, compare as diff_keys};
use rayon::prelude::*;
pub use verdict::Verdict;

/// Differences of model B from model A.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// Different keys: those of A in order, then those that only B has.
    pub keys: Vec<KeyChange>,
    /// Different tensors: those of A in order, then those that only B has.
    pub tensors: Vec<TensorChange>,
    /// Number of tensors with the same shape, type and bytes.
    pub same: usize,
    /// Error statistics of all different tensors of the same shape that can be decoded.
    pub total: Difference,
    /// The verdict.
    pub verdict: Verdict,
}

/// A different tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorChange {
    /// Name of the tensor.
    pub name: String,
    /// Kind of the difference.
    pub change: Change,
}

/// Kind of the difference of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Only in B.
    Added(TensorType, Shape),
    /// Only in A.
    Removed(TensorType, Shape),
    /// Different shapes.
    Reshaped {
        /// Type and shape in A.
        a: (TensorType, Shape),
        /// Type and shape in B.
        b: (TensorType, Shape),
    },
    /// Different data.
    Data {
        /// Type in A.
        a: TensorType,
        /// Type in B.
        b: TensorType,
        /// Error statistics of B relative to A; `None` if a type cannot be decoded.
        figures: Option<Difference>,
    },
}

/// Compares all bytes and values of two models on the threads of the current rayon pool, with a few megabytes of memory
/// per thread. Byte order is ignored.
///
/// `progress` counts the bytes of A; decoded bytes count twice.
///
/// # Errors
/// [`Error::Environment`] if data cannot be read; [`Error::File`] if the size of a tensor is not known.
pub fn diff(a: &Model, b: &Model, progress: &dyn Progress) -> Result<Diff, Error> {
    progress.begin("comparing", a.byte_len());
    let keys = keys::compare(a.metadata(), b.metadata());
    let (in_a, in_b) = (a.index(), b.index());
    let changes = a.tensors().par_iter().map(|tensor| {
        let Some(other) = in_b.get(&*tensor.info.name) else {
            return Ok(Some(Change::Removed(tensor.info.tensor_type, tensor.info.shape)));
        };
        weights::compare(tensor, other, progress)
    });
    let changes: Vec<Option<Change>> = changes.collect::<Result<_, Error>>()?;
    let same = changes.iter().filter(|change| change.is_none()).count();
    let mut tensors: Vec<TensorChange> = a
        .tensors()
        .iter()
        .zip(changes)
        .filter_map(|(tensor, change)| {
            Some(TensorChange { name: tensor.info.name.to_string(), change: change? })
        })
        .collect();
    let names: HashSet<&str> = in_a.into_keys().collect();
    let added = b.tensors().iter().map(|tensor| &tensor.info);
    tensors.extend(added.filter(|info| !names.contains(&*info.name)).map(|info| TensorChange {
        name: info.name.to_string(),
        change: Change::Added(info.tensor_type, info.shape),
    }));
    let mut total = Difference::default();
    for tensor in &tensors {
        if let Change::Data { figures: Some(figures), .. } = &tensor.change {
            total.add(figures);
        }
    }
    let verdict = verdict::verdict(a, b, &keys, &tensors, same, &total);
    Ok(Diff { keys, tensors, same, total, verdict })
}
