//! KL divergence of variants of a model with some tensors in other types.

use std::sync::Arc;

use gguf::{Error, TensorType};
use gguf_pipeline::Item;
use gguf_store::Progress;

use crate::{Chunks, RunOptions, Subject, divergence};

/// A model with some tensors in other types.
pub type Variant<'v> = Vec<(&'v Item, TensorType)>;

/// Returns the mean KL divergence of each variant from `model`. Up to `together` variants are in memory at a time; the
/// model reads each chunk once for all of them.
///
/// # Errors
/// If a tensor cannot be read or encoded; as [`divergence`].
pub fn divergence_of_variants(
    model: &Subject,
    variants: &[Variant<'_>],
    together: usize,
    chunks: &Chunks,
    options: RunOptions,
    progress: &dyn Progress,
) -> Result<Vec<f64>, Error> {
    let mut found = Vec::with_capacity(variants.len());
    for group in variants.chunks(together.max(1)) {
        let models = group.iter().map(|variant| with_variant(model, variant, progress));
        let models = models.collect::<Result<Vec<_>, Error>>()?;
        let all = divergence(model, &models, chunks, options, progress)?;
        found.extend(all.iter().map(|one| one.divergence.value()));
    }
    Ok(found)
}

/// Returns the model with the types of `variant`.
fn with_variant(
    model: &Subject,
    variant: &Variant<'_>,
    progress: &dyn Progress,
) -> Result<Subject, Error> {
    let mut executor = model.executor.clone();
    for (item, ty) in variant {
        let bytes = item.encoded(*ty, progress)?;
        executor = Arc::new(executor.with_tensor(&item.tensor.name, *ty, bytes.into())?);
    }
    Ok(Subject { name: model.name.clone(), executor })
}
