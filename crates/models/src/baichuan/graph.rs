//! Baichuan 1 and 2.

use gguf::Finding;
use gguf_graph::{PositionBias, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;
use crate::schema::key;

/// Layers of the models that know positions by ALiBi. No key says it.
const LAYERS_WITH_SLOPES: u64 = 40;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder::gated(builder, RopeLayout::Interleaved)?;
    if builder.hyper.u64(key::BLOCK_COUNT)? == LAYERS_WITH_SLOPES {
        family.bias = PositionBias::Alibi { max_bias: 8.0 };
        (family.rotation, family.window_rotation) = (None, None);
    }
    decoder(builder, &family)
}
