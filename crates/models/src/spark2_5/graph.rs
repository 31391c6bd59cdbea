//! Trinity, Mellum, Maple, Spark, PLaMo 3, MiMo 2, Step 3.5, Laguna, Muse Glimmer: some layers see a
//! window only, and rotate otherwise, or alone.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// Spark X2.5.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::GeluTanh,
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
