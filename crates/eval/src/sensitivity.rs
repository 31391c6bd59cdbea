//! What other types of single tensors do to predictions.

use std::sync::Arc;

use gguf::{Error, TensorType};
use gguf_pipeline::Item;
use gguf_runtime::Executor;
use gguf_store::Progress;

use crate::{RunOptions, Windows, divergence};

/// The model with some of its tensors in other types.
pub type Variant<'v> = Vec<(&'v Item, TensorType)>;

/// The mean divergence of each variant from the model. `together` of them are in memory at a time, and read
/// a window beside the model, which reads it once for all of them.
///
/// # Errors
/// If a tensor cannot be read or encoded, and as [`divergence`].
pub fn sensitivity(
    model: &Arc<Executor>,
    variants: &[Variant<'_>],
    together: usize,
    windows: &Windows,
    options: RunOptions,
    progress: &dyn Progress,
) -> Result<Vec<f64>, Error> {
    let mut found = Vec::with_capacity(variants.len());
    for group in variants.chunks(together.max(1)) {
        let executors = group.iter().map(|variant| of_variant(model, variant, progress));
        let executors = executors.collect::<Result<Vec<_>, Error>>()?;
        let all = divergence(model, &executors, windows, options, &mut |_| {}, progress)?;
        found.extend(all.iter().map(|one| one.divergence.value()));
    }
    Ok(found)
}

/// The model with other types.
fn of_variant(
    model: &Arc<Executor>,
    variant: &Variant<'_>,
    progress: &dyn Progress,
) -> Result<Arc<Executor>, Error> {
    let mut executor = model.clone();
    for (item, ty) in variant {
        let bytes = item.encoded(*ty, progress)?;
        executor = Arc::new(executor.with_tensor(&item.tensor.name, *ty, bytes)?);
    }
    Ok(executor)
}
