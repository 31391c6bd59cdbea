//! Computation graph of Ministral 3 and Mistral Small.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder, Temperature, attention};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a Llama decoder whose attention temperature has steps of the original context length.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention: |builder, x, _, mut attend| {
            let stated = builder.f32_or_default(key::ATTENTION_TEMPERATURE_SCALE)?;
            if let Some(scale) = stated.filter(|scale| *scale != 0.0) {
                let length = builder.size(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH)?;
                attend.temperature = Some(Temperature { length, scale });
            }
            attention(builder, x, &attend)
        },
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    blocks::decoder(builder, &decoder)
}
