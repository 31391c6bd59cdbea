//! Apertus, Refact, Jais, Chameleon, Talkie, Nanbeige, HRM: decoders that differ from llama in one part.

use gguf::Finding;
use gguf_graph::{Function, PositionBias};

use crate::blocks::{Decoder, decoder};
use crate::graph::{Builder, Norm};

/// Positions by ALiBi.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::mean_square(builder)?;
    let family = Decoder {
        function: Function::Silu,
        bias: PositionBias::Slopes { max: 8.0 },
        ..Decoder::plain(norm)
    };
    decoder(builder, &family)
}
