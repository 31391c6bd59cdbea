//! Graph of `cohere2moe`: Command R with a sliding window and a mixture of experts.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{self, Decoder, WindowPattern, attention, ffn, rope};
use crate::command_r::graph::command_r_decoder;
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Routed and shared experts are averaged. Leading dense layers have RoPE also with full attention.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        window_pattern: WindowPattern::AllButFirst(4),
        attention: |builder, x, layer, mut attend| {
            if layer < builder.hparams.u64(key::LEADING_DENSE_BLOCK_COUNT)? {
                attend.rope = rope(builder, RopeLayout::Interleaved)?;
            }
            attention(builder, x, &attend)
        },
        ffn: |builder, x, layer, decoder| {
            let output = ffn(builder, x, layer, decoder)?;
            let has_shared = builder.has("ffn_up_shexp.weight");
            Ok(builder.scale(output, if has_shared { 0.5 } else { 1.0 }))
        },
        rope: None,
        ..command_r_decoder(builder)?
    };
    if builder.hparams.value(key::ATTENTION_LAYER_NORM_RMS_EPSILON).is_some() {
        decoder.norm = Norm::rms(builder)?;
    }
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.normalize = false;
    blocks::decoder(builder, &decoder)
}
