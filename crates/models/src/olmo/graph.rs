//! OLMo 1, 2 and 3.

use gguf::Finding;
use gguf_graph::{Function, Pairs};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// The norms have no weights.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: Function::Silu,
        weightless_norms: true,
        ..Decoder::rotated(builder, Pairs::Neighbours)?
    };
    decoder(builder, &family)
}
