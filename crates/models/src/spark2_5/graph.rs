//! Computation graph of Spark X2.5.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::GeluTanh,
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
