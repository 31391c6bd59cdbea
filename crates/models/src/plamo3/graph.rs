//! Computation graph of PLaMo 3.

use gguf::Finding;
use gguf_graph::{RopeLayout, RopeParameters};

use crate::blocks::{self, Decoder, Windows};
use crate::graph::Builder;

/// Builds a decoder with sliding windows. Only full-attention layers have RoPE scaling, whose correction range is
/// not rounded.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder =
        Decoder { windows: Windows::AllButLast(8), ..Decoder::gated(builder, RopeLayout::Neox)? };
    decoder.window_rotation = decoder.window_rotation.map(RopeParameters::without_scaling);
    decoder.rotation = decoder.rotation.map(RopeParameters::without_truncation);
    blocks::decoder(builder, &decoder)
}
