//! Computation graph of ModernBERT: a bidirectional pre-norm encoder.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder, WindowPattern};
use crate::eurobert::graph::bidirectional;
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        window_pattern: WindowPattern::AllButFirst(3),
        ..bidirectional(Decoder::layer_norm_rope(builder, RopeLayout::Neox)?)
    };
    blocks::decoder(builder, &decoder)
}
