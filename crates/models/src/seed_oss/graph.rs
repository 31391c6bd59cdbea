//! Computation graph of Seed-OSS and GLM 4.5.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder whose FFN norm is `post_attention_norm`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        ffn_norm: "post_attention_norm",
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
