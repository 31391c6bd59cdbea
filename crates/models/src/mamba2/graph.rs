//! Computation graph of Mamba 2.

use gguf::Finding;

use crate::graph::Builder;
use crate::mamba::graph::layers;

/// Builds a model of Mamba 2 layers.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    layers(builder, |builder, x, ssm, norm| ssm.mamba2(builder, x, norm))
}
