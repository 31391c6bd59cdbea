//! Estimated memory of a run.

pub use gguf_runtime::memory_estimate::{
    DeviceMemory, Devices, LayerCache, LayerMemory, MemoryEstimate, MemoryOptions,
};
use gguf_store::Model;

use crate::Error;
use crate::run::{GraphSource, model_graph};

/// Estimates the memory of a model from its header.
///
/// # Errors
/// As [`model_graph`] and [`MemoryEstimate::new`].
pub fn estimate(model: &Model, options: &MemoryOptions) -> Result<MemoryEstimate, Error> {
    MemoryEstimate::new(model, &model_graph(model, GraphSource::Auto)?, options)
}

/// Returns the memory of each layer of a model from its header.
///
/// # Errors
/// As [`model_graph`].
pub fn layers(model: &Model) -> Result<Vec<LayerMemory>, Error> {
    Ok(LayerMemory::of_layers(model, &model_graph(model, GraphSource::Auto)?))
}
