//! Graph of `dbrx`: layer norms, clamped QKV, and a MoE in every layer.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// The norm before the MoE has the tensor name `attn_output_norm`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        ffn_norm: "attn_output_norm",
        ..Decoder::layer_norm_rope(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
