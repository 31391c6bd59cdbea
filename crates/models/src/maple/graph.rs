//! Trinity, Mellum, Maple, Spark, PLaMo 3, MiMo 2, Step 3.5, Laguna, Muse Glimmer: some layers see a
//! window only, and rotate otherwise, or alone.

use gguf::Finding;
use gguf_graph::{ActivationFunction, GluFunction, RopeLayout};

use crate::blocks::{Decoder, decoder, experts};
use crate::graph::Builder;
use crate::schema::key;

/// Layers without a window do not rotate. What goes into gates of experts is bounded.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        rotation: None,
        network: |builder, x, layer, decoder| {
            let mut routing = decoder.routing;
            if let Some(limit) = builder.limit(key::SWIGLU_CLAMP_EXP, layer)? {
                routing.function =
                    GluFunction::ClampBefore { function: ActivationFunction::Silu, limit };
            }
            experts(builder, x, layer, routing)
        },
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
