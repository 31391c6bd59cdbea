//! The recipe's decisions for the tensors of a job.

use std::collections::BTreeMap;

use gguf::{Error, Metadata, TensorType};
use gguf_pipeline::Tensor;

use crate::recipe::{self, PlannedTensor, Reason, Target, TensorDesc};

/// Describes a source tensor to the recipe.
pub fn describe<'t>(tensor: &'t Tensor) -> TensorDesc<'t> {
    TensorDesc { name: &tensor.name, shape: &tensor.shape, ty: tensor.stored_type }
}

/// The recipe's decision for a tensor.
#[derive(Clone, Copy)]
pub struct Decision {
    /// Type of the tensor.
    pub target: TensorType,
    /// Whether the tensor is unusable unless importance weights guide its encoder.
    pub needs_importance: bool,
    /// Whether a budget may change the type: it was not set explicitly, and the tensor need not
    /// stay unchanged.
    pub free: bool,
}

/// Decides the type of each tensor, and returns notes for the user.
///
/// # Errors
/// Returns an error if a tensor cannot have the type that the recipe or the options require.
pub fn decide(
    tensors: &[TensorDesc],
    metadata: &Metadata,
    target: Target,
    options: &recipe::RecipeOptions,
) -> Result<(Vec<Decision>, Vec<String>), Error> {
    let architecture = metadata.architecture().unwrap_or_default();
    let model = recipe::Model::from_keys(architecture, |key| {
        let value = metadata.get(key)?;
        match value.as_array() {
            // A per-block array: llama.cpp's loader reads the first element.
            Some(array) => array.iter().next()?.to_u64(),
            None => value.to_u64(),
        }
    });
    let plan = recipe::plan(target, &model, tensors, options)?;
    let notes = fallbacks(&plan.tensors);
    // `COPY` assigns no types.
    let unmatched = match target {
        Target::Copy => None,
        _ => options.unmatched(tensors.iter().map(|tensor| tensor.name)),
    };
    let notes = unmatched.map(|what| format!("warning: {what}")).into_iter().chain(notes).collect();
    let decision = |tensor: &PlannedTensor| Decision {
        target: tensor.target,
        needs_importance: tensor.needs_imatrix,
        free: matches!(tensor.reason, Reason::Recipe | Reason::Fallback { .. }),
    };
    Ok((plan.tensors.iter().map(decision).collect(), notes))
}

/// Returns one note per row size for the tensors that cannot have the type of the recipe.
fn fallbacks(tensors: &[PlannedTensor]) -> Vec<String> {
    let mut by_size: BTreeMap<u64, Vec<(&PlannedTensor, TensorType)>> = BTreeMap::new();
    for tensor in tensors {
        if let Reason::Fallback { intended } = tensor.reason {
            let size = tensor.source.shape.first().copied().unwrap_or(1);
            by_size.entry(size).or_default().push((tensor, intended));
        }
    }
    let note = |(size, group): (u64, Vec<(&PlannedTensor, TensorType)>)| {
        if let [(tensor, intended)] = &group[..] {
            return format!(
                "`{}` becomes {} instead of {intended}: its row size {size} is not a multiple of the block size",
                tensor.source.name, tensor.target,
            );
        }
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (tensor, intended) in &group {
            *counts.entry(format!("{} instead of {intended}", tensor.target)).or_default() += 1;
        }
        let counts: Vec<_> =
            counts.iter().map(|(change, count)| format!("{change} ({count})")).collect();
        format!(
            "{} of {} tensors have rows of {size} elements, which is not a multiple of the block size: {}",
            group.len(),
            tensors.len(),
            counts.join(", ")
        )
    };
    by_size.into_iter().map(note).collect()
}
