//! Gemma 1, 2 and 3, and the encoder made of the third.

use gguf::Finding;
use gguf_graph::RopeParameters;

use crate::blocks::{Decoder, Windows, decoder};
use crate::gemma::graph::usual;
use crate::graph::Builder;

/// Of six layers one has no window; only these stretch positions.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = third(usual(builder, 62)?);
    decoder(builder, &family)
}

pub(crate) fn third(family: Decoder) -> Decoder {
    let window_rotation = family.window_rotation.clone().map(RopeParameters::without_scaling);
    Decoder { windows: Windows::AllButLast(6), window_rotation, ..family }
}
