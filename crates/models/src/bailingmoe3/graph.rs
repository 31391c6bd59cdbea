//! Graph of `bailingmoe3`: Kimi Delta Attention in most layers, MLA in the others.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, DecayBound, clamped_ffn};
use crate::graph::Builder;
use crate::kimi_linear::graph::{kda_mla_decoder, mixer};
use crate::schema::key;

/// The KDA decay has a lower bound, and MLA a gate per head. With M-RoPE sections (vision models),
/// which are equal for text, RoPE has the NeoX layout.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let sections = builder.hparams.value(key::ROPE_DIMENSION_SECTIONS);
    let mut sections =
        sections.and_then(|all| all.as_array()).into_iter().flat_map(|all| all.iter());
    let has_mrope = sections.any(|section| section.to_i64().is_some_and(|section| section != 0));
    let mut decoder = kda_mla_decoder(builder)?;
    if let Some(rope) = decoder.rope.as_mut().filter(|_| has_mrope) {
        rope.layout = RopeLayout::Neox;
    }
    decoder.routing.normalize = false;
    decoder.ffn = clamped_ffn;
    decoder.attention = |builder, x, layer, attend| {
        let least = builder.hparams.f32(key::KDA_GATE_LOWER_BOUND)?;
        mixer(builder, x, layer, attend, Some(DecayBound { least, sign: 1.0 }))
    };
    blocks::decoder(builder, &decoder)
}
