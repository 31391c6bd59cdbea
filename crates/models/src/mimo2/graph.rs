//! Computation graph of MiMo-V2.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{self, Decoder, attention};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a MoE decoder whose attention output is multiplied by `attention.value_scale`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        attention: |builder, x, _, attend| {
            let attended = attention(builder, x, &attend)?;
            let scale = builder.scale_or_one(key::ATTENTION_VALUE_SCALE)?;
            Ok(builder.scale(attended, scale))
        },
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.mtp_before_norm = true;
    decoder.routing.gating = Gating::Sigmoid;
    blocks::decoder(builder, &decoder)
}
