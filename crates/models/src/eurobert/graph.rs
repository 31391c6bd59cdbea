//! Graph of `eurobert`: Llama in NeoX layout with bidirectional attention.

use gguf::Finding;
use gguf_graph::{Mask, RopeLayout};

use crate::blocks::{self, Decoder, attention};
use crate::graph::Builder;

/// Builds a bidirectional Llama without output projection.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = bidirectional(Decoder::llama_like(builder, RopeLayout::Neox)?);
    blocks::decoder(builder, &decoder)
}

/// Returns the decoder as an encoder: attention is bidirectional unless `attention.causal` is true,
/// without KV cache; sliding windows are symmetric; there are no logits.
pub(crate) fn bidirectional(decoder: Decoder) -> Decoder {
    Decoder {
        attention: |builder, x, _, mut attend| {
            let key = "attention.causal";
            let is_causal = builder.hparams.value(key).is_some() && builder.hparams.bool(key)?;
            if !is_causal {
                attend.cached = false;
                attend.mask = match attend.mask {
                    Mask::SlidingWindow(len) => Mask::SymmetricWindow(len),
                    Mask::Causal => Mask::Full,
                    mask => mask,
                };
            }
            attention(builder, x, &attend)
        },
        has_logits: false,
        ..decoder
    }
}
