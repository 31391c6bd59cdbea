//! Trinity, Mellum, Maple, Spark, PLaMo 3, MiMo 2, Step 3.5, Laguna, Muse Glimmer: some layers see a
//! window only, and rotate otherwise, or alone.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{Decoder, attention, decoder};
use crate::graph::Builder;
use crate::schema::key;

/// What attention gives may have a factor.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        attention: |builder, x, _, attend| {
            let attended = attention(builder, x, &attend)?;
            let scale = builder.factor(key::ATTENTION_VALUE_SCALE)?;
            Ok(builder.scale(attended, scale))
        },
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    family.routing.gating = Gating::Sigmoid;
    decoder(builder, &family)
}
