//! Trinity, Mellum, Maple, Spark, PLaMo 3, MiMo 2, Step 3.5, Laguna, Muse Glimmer: some layers see a
//! window only, and rotate otherwise, or alone.

use gguf::Finding;
use gguf_graph::{NormKind, RopeLayout};

use crate::blocks::{Decoder, Windows, decoder};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Embeddings are normed. Layers without a window do not rotate. Norms behind a part have another
/// epsilon.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    /// No key tells it.
    const EPSILON: f32 = 1e-8;
    let behind = Norm { kind: NormKind::Rms, epsilon: EPSILON };
    let family = Decoder {
        windows: Windows::AllButLast(4),
        rotation: None,
        logit_scale: builder.factor(key::LOGIT_SCALE)?,
        norms_embedding: true,
        norm_behind: Some(behind),
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    decoder(builder, &family)
}
