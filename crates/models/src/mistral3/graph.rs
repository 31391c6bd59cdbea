//! Ministral 3: as llama, with attention that sharpens with the position.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, Sharpening, attention, decoder};
use crate::graph::Builder;
use crate::schema::key;

/// The context before stretching is also the length of a step.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, _, mut attend| {
            let stated = builder.known(key::ATTENTION_TEMPERATURE_SCALE)?;
            if let Some(scale) = stated.filter(|scale| *scale != 0.0) {
                let length = builder.size(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH)?;
                attend.sharpening = Some(Sharpening { length, scale });
            }
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    decoder(builder, &family)
}
