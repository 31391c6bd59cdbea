//! Kimi Linear and Ling 3: delta attention in most layers, attention to what is compressed in the others.

use gguf::Finding;

use super::deepseek;
use crate::build::Builder;
use crate::layers::{Attend, Bound, Decoder, decoder, delta_attention};
use crate::op::Gating;
use crate::raw::ValueId;
use crate::rotation::Pairs;

/// Nothing rotates: states know the order.
pub(super) fn kimi_linear(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = compressed(builder)?;
    (family.rotation, family.window_rotation) = (None, None);
    family.attention = |builder, x, layer, attend| mixer(builder, x, layer, attend, None);
    decoder(builder, &family)
}

/// Decays are bounded, and heads of attention have gates.
pub(super) fn ling3(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = compressed(builder)?;
    family.routing.normalize = false;
    family.attention = |builder, x, layer, attend| {
        let least = builder.hyper.f32("kda.gate_lower_bound")?;
        mixer(builder, x, layer, attend, Some(Bound { least, sign: 1.0 }))
    };
    decoder(builder, &family)
}

/// What both are but for their mixers.
fn compressed(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut family = Decoder {
        attention_scale: Some(deepseek::scale(builder)?),
        ..Decoder::gated(builder, Pairs::Neighbours)?
    };
    family.routing.gating = Gating::Sigmoid;
    Ok(family)
}

fn mixer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    attend: Attend,
    bound: Option<Bound>,
) -> Result<ValueId, Finding> {
    if builder.has("attn_kv_a_mqa.weight") {
        return deepseek::attention(builder, x, layer, attend);
    }
    delta_attention(builder, x, attend.heads.heads, attend.norm, bound)
}
