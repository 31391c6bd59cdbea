//! What other types of single tensors do to predictions.

use std::sync::Arc;

use gguf::{Error, TensorType};
use gguf_pipeline::Item;
use gguf_store::Progress;

use crate::{RunOptions, Subject, Windows, divergence};

/// The model with some of its tensors in other types.
pub type Variant<'v> = Vec<(&'v Item, TensorType)>;

/// The mean divergence of each variant from the model. `together` of them are in memory at a time, and read
/// a window beside the model, which reads it once for all of them.
///
/// # Errors
/// If a tensor cannot be read or encoded, and as [`divergence`].
pub fn sensitivity(
    model: &Subject,
    variants: &[Variant<'_>],
    together: usize,
    windows: &Windows,
    options: RunOptions,
    progress: &dyn Progress,
) -> Result<Vec<f64>, Error> {
    let mut found = Vec::with_capacity(variants.len());
    for group in variants.chunks(together.max(1)) {
        let made = group.iter().map(|variant| of_variant(model, variant, progress));
        let made = made.collect::<Result<Vec<_>, Error>>()?;
        let all = divergence(model, &made, windows, options, progress)?;
        found.extend(all.iter().map(|one| one.divergence.value()));
    }
    Ok(found)
}

/// The model with other types.
fn of_variant(
    model: &Subject,
    variant: &Variant<'_>,
    progress: &dyn Progress,
) -> Result<Subject, Error> {
    let mut executor = model.executor.clone();
    for (item, ty) in variant {
        let bytes = item.encoded(*ty, progress)?;
        executor = Arc::new(executor.with_tensor(&item.tensor.name, *ty, bytes)?);
    }
    Ok(Subject { name: model.name.clone(), executor })
}
