//! Computation graph of Mellum 2.

use gguf::Finding;
use gguf_graph::{RopeLayout, RopeParameters};

use crate::blocks::{self, Decoder, Windows};
use crate::graph::Builder;

/// Builds a MoE decoder; sliding-window layers have no RoPE scaling.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder =
        Decoder { windows: Windows::AllButLast(4), ..Decoder::gated(builder, RopeLayout::Neox)? };
    decoder.window_rotation = decoder.window_rotation.map(RopeParameters::without_scaling);
    blocks::decoder(builder, &decoder)
}
