//! Graph of `exaone4` and `exaone-moe`: Llama in NeoX layout with a sliding window.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder, WindowPattern};
use crate::graph::Builder;
use crate::schema::key;

/// Builds the decoder of EXAONE 4.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = exaone4_decoder(builder)?;
    blocks::decoder(builder, &decoder)
}

/// Returns the decoder of EXAONE 4. In models with a sliding window every fourth layer has full
/// attention without RoPE.
pub(crate) fn exaone4_decoder(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut decoder = Decoder {
        window_pattern: WindowPattern::AllButLast(4),
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    let has_window = builder.hparams.value(key::ATTENTION_SLIDING_WINDOW).is_some();
    if has_window && builder.size(key::ATTENTION_SLIDING_WINDOW)? > 0 {
        decoder.rope = None;
    }
    Ok(decoder)
}
