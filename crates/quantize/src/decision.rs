//! What the recipe wants for the tensors of a job.

use gguf::{Error, Metadata, TensorType};
use gguf_pipeline::Tensor;

use crate::recipe::{self, PlannedTensor, Reason, Target, TensorDesc};

/// A tensor of the source, as recipes look at it.
pub fn describe<'t>(tensor: &'t Tensor) -> TensorDesc<'t> {
    TensorDesc { name: &tensor.name, shape: &tensor.shape, ty: tensor.stored_type }
}

/// What the recipe wants for a tensor.
#[derive(Clone, Copy)]
pub struct Decision {
    /// The type it gets.
    pub target: TensorType,
    /// It comes out as garbage unless importance weights guide its encoder.
    pub needs_weights: bool,
    /// Nobody asked for this type by name, and the tensor does not have to stay as it is.
    pub free: bool,
}

/// A type per tensor, and what the user should know about them.
///
/// # Errors
/// If a tensor cannot have the type that it should.
pub fn decide(
    tensors: &[TensorDesc],
    metadata: &Metadata,
    target: Target,
    options: &recipe::Options,
) -> Result<(Vec<Decision>, Vec<String>), Error> {
    let architecture = metadata.architecture().unwrap_or_default();
    let model = recipe::Model::from_keys(architecture, |key| {
        let value = metadata.get(key)?;
        match value.as_array() {
            // A number per block: llama.cpp's loader looks at the first.
            Some(array) => array.iter().next()?.to_u64(),
            None => value.to_u64(),
        }
    });
    let plan = recipe::plan(target, &model, tensors, options)?;
    let notes = plan.tensors.iter().filter_map(|tensor| match tensor.reason {
        Reason::Fallback { wanted } => Some(format!(
            "`{}` becomes {} instead of {wanted}: its rows of {} are no whole number of blocks",
            tensor.source.name,
            tensor.target,
            tensor.source.shape.first().copied().unwrap_or(1),
        )),
        _ => None,
    });
    // `copy` has no types to give.
    let unmatched = match target {
        Target::Copy => None,
        _ => options.unmatched(tensors.iter().map(|tensor| tensor.name)),
    };
    let notes = unmatched.map(|what| format!("warning: {what}")).into_iter().chain(notes).collect();
    let decision = |tensor: &PlannedTensor| Decision {
        target: tensor.target,
        needs_weights: tensor.needs_imatrix,
        free: matches!(tensor.reason, Reason::Recipe | Reason::Fallback { .. }),
    };
    Ok((plan.tensors.iter().map(decision).collect(), notes))
}
