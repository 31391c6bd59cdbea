//! Computation graph of GPT-NeoX and Pythia.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a decoder with layer norms; `use_parallel_residual` tells whether attention and FFN run
/// in parallel.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let parallel = builder.hparams.bool(key::USE_PARALLEL_RESIDUAL)?;
    let decoder = Decoder { parallel, ..Decoder::layer_norm_rope(builder, RopeLayout::Neox)? };
    blocks::decoder(builder, &decoder)
}
