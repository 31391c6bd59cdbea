//! Trinity, Mellum, Maple, Spark, PLaMo 3, MiMo 2, Step 3.5, Laguna, Muse Glimmer: some layers see
//! a window only, and rotate otherwise, or alone.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{Decoder, Windows, decoder};
use crate::graph::Builder;
use crate::schema::key;

/// Arcee's Trinity. Layers without a window do not rotate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let mut family = Decoder {
        windows: Windows::AllButLast(4),
        rotation: None,
        embedding_scale: width.sqrt(),
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    family.routing.gating = Gating::Sigmoid;
    decoder(builder, &family)
}
