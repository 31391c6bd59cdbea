//! Kimi Linear, Kimi K3 and Ling 3: delta attention in most layers, attention to what is compressed in the others.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout, ValueId};

use crate::blocks::{Attend, Bound, Decoder, decoder, delta_attention};
use crate::deepseek2;
use crate::graph::Builder;

/// Nothing rotates: states know the order.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = compressed(builder)?;
    (family.rotation, family.window_rotation) = (None, None);
    family.attention = |builder, x, layer, attend| mixer(builder, x, layer, attend, None);
    decoder(builder, &family)
}

/// What all are but for their mixers.
pub(crate) fn compressed(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut family = Decoder {
        attention_scale: Some(deepseek2::graph::scale(builder)?),
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    family.routing.gating = Gating::Sigmoid;
    Ok(family)
}

pub(crate) fn mixer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    attend: Attend,
    bound: Option<Bound>,
) -> Result<ValueId, Finding> {
    if builder.has("attn_kv_a_mqa.weight") {
        return deepseek2::graph::attention(builder, x, layer, attend);
    }
    delta_attention(builder, x, attend.heads.heads, attend.norm, bound)
}
