//! Computation graph of Muse Glimmer.

use gguf::Finding;
use gguf_graph::{NormKind, RopeLayout};

use crate::blocks::{self, Decoder, WindowPattern};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Builds a decoder with a normalized embedding, sandwich norms, and RoPE in sliding-window layers only.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    /// Epsilon of the norms after attention and FFN, for which GGUF has no key.
    const POST_NORM_EPSILON: f32 = 1e-8;
    let post_norm = Norm { kind: NormKind::Rms, epsilon: POST_NORM_EPSILON };
    let decoder = Decoder {
        window_pattern: WindowPattern::AllButLast(4),
        rope: None,
        logit_scale: builder.scale_or_one(key::LOGIT_SCALE)?,
        normalizes_embedding: true,
        post_norm: Some(post_norm),
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    blocks::decoder(builder, &decoder)
}
