//! A whole model, matrix by matrix in the order in which it computes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gguf::Error;
use gguf_graph::RawGraph;
use gguf_pipeline::Item;
use gguf_runtime::Executor;
use gguf_store::Progress;

use crate::moments::Moments;
use crate::stage::{matrices, stages};
use crate::tensor::Encoders;
use crate::walk::{Seen, Walk};

/// How a model is calibrated.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What is added to the diagonal of second moments, in terms of its mean; a short text has more added.
    pub damping: f32,
    /// How many tokens for each column of the narrowest matrix the original reads, too: beyond them, what matrices
    /// before one spoiled is known well enough.
    pub compared: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { damping: 0.1, compared: 64 }
    }
}

/// A tensor that was encoded.
pub struct Calibrated {
    /// Its name.
    pub name: String,
    /// Its rows as blocks.
    pub bytes: Vec<u8>,
    /// Matrices of it.
    pub matrices: usize,
    /// Matrices that nothing was multiplied with: their weights count alike.
    pub unreached: usize,
    /// Columns of each.
    pub columns: usize,
    /// The fewest tokens that the inputs of one were summed over, of those that were reached.
    pub tokens: u64,
    /// Columns whose input is always 0, of all that were reached.
    pub dead: usize,
}

/// Whether an item changes its type, and consists of matrices of blocks that a graph multiplies values with.
pub fn is_calibrated(raw: &RawGraph, item: &Item) -> bool {
    item.tensor.shape.len() >= 2
        && item.target != item.tensor.stored_type
        && gguf_quant::has_form(item.target)
        && matrices(raw).contains(&item.tensor.name.as_str())
}

/// What an earlier run has made of the tensor of a name.
pub type Made<'m> = dyn Fn(&str) -> Result<Option<Vec<u8>>, Error> + 'm;

/// Who gets what is made, one after the other.
pub type Each<'e> = dyn FnMut(Calibrated) -> Result<(), Error> + 'e;

/// Who gets the names of tensors that are multiplied with the same, and the moments of each of their matrices.
pub type EachSeen<'e> = dyn FnMut(&[String], &[Moments]) -> Result<(), Error> + 'e;

/// Encodes the matrices of a model that products are made with, one after the other: `each` gets them, but for those
/// that `made` has already. `items` are all tensors that change their type; others than those matrices are encoded as
/// always, and `each` does not get them. `windows` are the texts that the model reads, token ids, each for itself;
/// what is computed of them is kept in a file without a name in `directory`.
///
/// # Errors
/// `weights-unusable` if NaN enters a product; if a tensor cannot be read or encoded; what `made` and `each` say; and
/// as [`gguf_runtime::Context::run`].
#[expect(clippy::too_many_arguments, reason = "what is given, where, and to whom")]
pub fn calibrate(
    original: &Arc<Executor>,
    items: &[&Item],
    windows: &[Vec<u32>],
    options: Options,
    directory: &Path,
    made: &Made<'_>,
    each: &mut Each<'_>,
    progress: &dyn Progress,
) -> Result<Arc<Executor>, Error> {
    let by_name: HashMap<&str, &Item> =
        items.iter().map(|item| (item.tensor.name.as_str(), *item)).collect();
    let raw = original.graph().raw();
    let is_wanted = |name: &str| by_name.get(name).is_some_and(|item| is_calibrated(raw, item));
    let all = stages(raw, is_wanted);
    let mut quantized = original.clone();
    for item in items {
        let name = &item.tensor.name;
        let is_used = raw.weights.iter().any(|weight| weight.name == *name);
        if is_used && !all.iter().any(|stage| stage.tensors.contains(name)) {
            let bytes = item.encoded(item.target, progress)?;
            quantized = Arc::new(quantized.with_tensor(name, item.target, bytes)?);
        }
    }
    let names = all.iter().flat_map(|stage| &stage.tensors);
    let widths = names.map(|name| by_name[name.as_str()].tensor.shape.row_len() as usize);
    let compared = options.compared.saturating_mul(widths.min().unwrap_or(0));
    let mut walk = Walk::new(original, windows, compared, directory)?;
    let mut encoders = Encoders::default();
    for stage in &all {
        let mut rest = Vec::new();
        for name in &stage.tensors {
            let item = by_name[name.as_str()];
            match made(name)? {
                Some(bytes) => {
                    quantized = Arc::new(quantized.with_tensor(name, item.target, bytes)?);
                }
                None => rest.push(item),
            }
        }
        if rest.is_empty() {
            continue;
        }
        let Seen { moments, missing } = walk.see(stage, &quantized, progress)?;
        for made in encoders.encode(&rest, moments, missing, options.damping, progress)? {
            let ty = by_name[made.name.as_str()].target;
            quantized = Arc::new(quantized.with_tensor(&made.name, ty, made.bytes.clone())?);
            each(made)?;
        }
    }
    Ok(quantized)
}

/// Sums what enters the matrices of a model while it reads windows, as [`calibrate`] does, of the model as it is:
/// `each` gets the names of tensors that are multiplied with the same, and the moments of each of their matrices.
///
/// # Errors
/// As [`calibrate`].
pub fn collect(
    original: &Arc<Executor>,
    windows: &[Vec<u32>],
    directory: &Path,
    each: &mut EachSeen<'_>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut walk = Walk::new(original, windows, 0, directory)?;
    for stage in stages(original.graph().raw(), |_| true) {
        let seen = walk.see(&stage, original, progress)?;
        each(&stage.tensors, &seen.moments)?;
    }
    Ok(())
}
