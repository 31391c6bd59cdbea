//! How two models differ: keys, tensors, and in words.

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

/// How model B differs from model A.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// Keys with other values, those of A in its order, then those that only B has.
    pub keys: Vec<KeyChange>,
    /// Tensors that differ, those of A in its order, then those that only B has.
    pub tensors: Vec<TensorChange>,
    /// Tensors with the same shape, type and bytes.
    pub same: usize,
    /// Figures of all tensors of the same shape that differ and could be decoded.
    pub total: Difference,
    /// What it comes to.
    pub verdict: Verdict,
}

/// A tensor that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorChange {
    /// Its name.
    pub name: String,
    /// How.
    pub change: Change,
}

/// How a tensor differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Only B has it.
    Added(TensorType, Shape),
    /// Only A has it.
    Removed(TensorType, Shape),
    /// Another shape, perhaps another type.
    Reshaped {
        /// In A.
        a: (TensorType, Shape),
        /// In B.
        b: (TensorType, Shape),
    },
    /// Other data, perhaps of another type.
    Data {
        /// The type in A.
        a: TensorType,
        /// The type in B.
        b: TensorType,
        /// How far B's values are from A's; `None` if one of the types cannot be decoded.
        figures: Option<Difference>,
    },
}

/// Compares two models, tensors by all their bytes and values, on all threads of the current
/// rayon pool. Memory stays at a few megabytes per thread. Byte order makes no difference.
///
/// `progress` is called with the number of bytes of A just compared; what is decoded is
/// counted once more.
///
/// # Errors
/// [`Error::Environment`] if data cannot be read, [`Error::File`] if the size of a tensor is not
/// known.
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
    let verdict = verdict::judge(a, b, &keys, &tensors, same, &total);
    Ok(Diff { keys, tensors, same, total, verdict })
}
