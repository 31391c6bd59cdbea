//! DeepSeek 2 and 3, PLM and MiniCPM 3: keys and values are compressed, and experts follow some dense
//! layers.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::deepseek2::graph::{attention, scale};
use crate::graph::Builder;

/// PLM: compressed keys and values, and a feed-forward network without a gate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention,
        function: ActivationFunction::ReluSquared,
        attention_scale: Some(scale(builder)?),
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    decoder(builder, &family)
}
