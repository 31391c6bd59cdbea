//! Computation graph of Maple.

use gguf::Finding;
use gguf_graph::{ActivationFunction, GluFunction, RopeLayout};

use crate::blocks::{self, Decoder, experts};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a MoE decoder with RoPE in sliding-window layers only. The inputs of SwiGLU are clamped.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        rope: None,
        ffn: |builder, x, layer, decoder| {
            let mut routing = decoder.routing;
            if let Some(limit) = builder.clamp_limit(key::SWIGLU_CLAMP_EXP, layer)? {
                routing.function =
                    GluFunction::ClampBefore { function: ActivationFunction::Silu, limit };
            }
            experts(builder, x, layer, routing)
        },
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
