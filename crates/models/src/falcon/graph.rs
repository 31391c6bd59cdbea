//! Graph of `falcon`: layer norms, attention and FFN in parallel.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// An FFN without a gate, with GELU, parallel to attention.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder =
        Decoder { parallel: true, ..Decoder::layer_norm_rope(builder, RopeLayout::Neox)? };
    blocks::decoder(builder, &decoder)
}
