//! Computation graph of StableLM.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder. Models without a norm before the FFN have a parallel residual. The key `use_parallel_residual` is
/// ignored, as it is wrong in old files.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let parallel = !builder.has("blk.0.ffn_norm.weight");
    let decoder = Decoder {
        function: ActivationFunction::Silu,
        parallel,
        ..Decoder::layer_norm_rope(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
