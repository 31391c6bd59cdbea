//! Ministral 3: as llama, with attention that sharpens with the position.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Attend, Decoder, attend_to, decoder, queries_keys_values};
use crate::op::Op;
use crate::raw::ValueId;
use crate::rotation::Pairs;

pub(super) fn mistral3(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { attention, ..Decoder::gated(builder, Pairs::Neighbours)? };
    decoder(builder, &family)
}

fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    attend: Attend,
) -> Result<ValueId, Finding> {
    let [mut query, mut key, value] = queries_keys_values(builder, x, &attend)?;
    if let Some(rotation) = &attend.rotation {
        let [heads, heads_kv] = [attend.heads.heads, attend.heads.heads_kv];
        query = builder.op(Op::Rotate { x: query, heads, rotation: rotation.clone() });
        key = builder.op(Op::Rotate { x: key, heads: heads_kv, rotation: rotation.clone() });
    }
    // The context before stretching is also the length of a step.
    if let Some(scale) = builder.known("attention.temperature_scale")?.filter(|s| *s != 0.0) {
        let length = builder.size("rope.scaling.original_context_length")?;
        query = builder.op(Op::ScaleByPosition { x: query, offset: 0, length, scale });
    }
    let attended = attend_to(builder, [query, key, value], &attend);
    builder.product(attended, "attn_output")
}
