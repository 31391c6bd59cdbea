//! Computation graph of MiniCPM3.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::deepseek2::graph::{attention, softmax_scale};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a decoder with MLA and the multipliers of MiniCPM, which have no keys.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let layers = builder.hparams.u64(key::BLOCK_COUNT)? as f32;
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let decoder = Decoder {
        attention,
        attention_scale: Some(softmax_scale(builder)?),
        embedding_scale: 12.0,
        residual_scale: 1.4 / layers.sqrt(),
        logit_scale: 256.0 / width,
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
