//! Computation graph of Kimi Linear: Kimi Delta Attention in most layers, MLA in the others.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout, ValueId};

use crate::blocks::{self, Attend, DecayBound, Decoder, kimi_delta_attention};
use crate::deepseek2;
use crate::graph::Builder;

/// Builds a decoder without RoPE.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = kda_mla_decoder(builder)?;
    (decoder.rope, decoder.window_rope) = (None, None);
    decoder.attention = |builder, x, layer, attend| mixer(builder, x, layer, attend, None);
    blocks::decoder(builder, &decoder)
}

/// Returns a MoE decoder with a sigmoid router and the attention scale of MLA.
pub(crate) fn kda_mla_decoder(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut decoder = Decoder {
        attention_scale: Some(deepseek2::graph::softmax_scale(builder)?),
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    decoder.routing.gating = Gating::Sigmoid;
    Ok(decoder)
}

/// Adds MLA or KDA, whichever the layer has.
pub(crate) fn mixer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    attend: Attend,
    bound: Option<DecayBound>,
) -> Result<ValueId, Finding> {
    if builder.has("attn_kv_a_mqa.weight") {
        return deepseek2::graph::attention(builder, x, layer, attend);
    }
    kimi_delta_attention(builder, x, attend.heads.heads, attend.norm, bound)
}
