//! Computation graph of GroveMoE.

use gguf::Finding;
use gguf_graph::{Moe, RopeLayout, ValueId};

use crate::blocks::{self, Decoder, experts_by};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a decoder with MoE and group experts.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder =
        Decoder { ffn: moe_with_group_experts, ..Decoder::llama_like(builder, RopeLayout::Neox)? };
    blocks::decoder(builder, &decoder)
}

/// Adds MoE: the selected experts, and for each of them the smaller expert of its group, with the
/// weight of the selected expert times `expert_group_scale`.
fn moe_with_group_experts(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let scores = builder.matmul(x, "ffn_gate_inp")?;
    let large = experts_by(builder, x, scores, layer, decoder.routing)?;
    let groups = builder.extent("ffn_gate_chexps.weight", 2).max(1);
    let group_size = builder.extent("ffn_gate_exps.weight", 2) / groups;
    let small = Moe {
        experts_per_network: u32::try_from(group_size).unwrap_or(0),
        weights_scale: large.weights_scale * builder.scale_or_one(key::EXPERT_GROUP_SCALE)?,
        gate: Some(builder.weight("ffn_gate_chexps.weight")?),
        up: builder.weight("ffn_up_chexps.weight")?,
        down: builder.weight("ffn_down_chexps.weight")?,
        ..large.clone()
    };
    let [large, small] = [large, small].map(|experts| builder.op(experts));
    Ok(builder.add(large, small))
}
