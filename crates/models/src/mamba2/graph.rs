//! Mamba, FalconMamba and Mamba 2.

use gguf::Finding;

use crate::graph::Builder;
use crate::mamba::graph::layers;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    layers(builder, |builder, x, space, norm| space.second(builder, x, norm))
}
