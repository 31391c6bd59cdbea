//! BERT and what follows it: encoders of text, whose norms stand behind the sums. The latest,
//! ModernBERT, NeoBERT and EuroBERT, are decoders that see both sides.

use gguf::Finding;
use gguf_graph::{Mask, RopeLayout};

use crate::blocks::{Decoder, attention, decoder};
use crate::graph::Builder;

/// EuroBERT is as llama, but for what its tokens see.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = on_both_sides(Decoder::gated(builder, RopeLayout::Neox)?);
    decoder(builder, &family)
}

/// Tokens see those behind them too, unless the model says that they do not, and nothing is
/// guessed.
pub(crate) fn on_both_sides(family: Decoder) -> Decoder {
    Decoder {
        attention: |builder, x, _, mut attend| {
            let key = "attention.causal";
            let is_causal = builder.hyper.stated(key).is_some() && builder.hyper.bool(key)?;
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
        ..family
    }
}
