//! Computation graph of PLaMo 3.

use gguf::Finding;
use gguf_graph::{RopeLayout, RopeParameters};

use crate::blocks::{Decoder, Windows, decoder};
use crate::graph::Builder;

/// Builds a decoder with sliding windows. Only full-attention layers have RoPE scaling, whose correction range is
/// not rounded.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family =
        Decoder { windows: Windows::AllButLast(8), ..Decoder::gated(builder, RopeLayout::Neox)? };
    family.window_rotation = family.window_rotation.map(RopeParameters::without_scaling);
    family.rotation = family.rotation.map(RopeParameters::without_truncation);
    decoder(builder, &family)
}
