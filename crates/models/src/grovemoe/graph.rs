//! GroveMoE: experts of a group share a smaller one.

use gguf::Finding;
use gguf_graph::{Moe, RopeLayout, ValueId};

use crate::blocks::{Decoder, decoder, experts_by};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { network, ..Decoder::gated(builder, RopeLayout::Neox)? };
    decoder(builder, &family)
}

/// What each chosen expert gives, and what the smaller one of its group makes of the same.
fn network(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let scores = builder.product(x, "ffn_gate_inp")?;
    let large = experts_by(builder, x, scores, layer, decoder.routing)?;
    let count = builder.extent("ffn_gate_chexps.weight", 2).max(1);
    let share = builder.extent("ffn_gate_exps.weight", 2) / count;
    let small = Moe {
        experts_per_network: u32::try_from(share).unwrap_or(0),
        weights_scale: large.weights_scale * builder.factor(key::EXPERT_GROUP_SCALE)?,
        gate: Some(builder.weight("ffn_gate_chexps.weight")?),
        up: builder.weight("ffn_up_chexps.weight")?,
        down: builder.weight("ffn_down_chexps.weight")?,
        ..large.clone()
    };
    let [large, small] = [large, small].map(|experts| builder.op(experts));
    Ok(builder.add(large, small))
}
