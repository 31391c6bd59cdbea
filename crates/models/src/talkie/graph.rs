//! Computation graph of Talkie.

use gguf::Finding;
use gguf_graph::{MulWeight, RopeLayout, ValueId};

use crate::blocks::{
    Attend, Decoder, apply_rope, attend_to, attention_output, embedding, finish, layer, layers,
    project_qkv,
};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a decoder with weightless norms, whose layers add the embedding again.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention: attention_with_gain,
        normalizes_embedding: true,
        weightless_norms: true,
        logit_scale: builder.scale_or_one(key::LOGIT_SCALE)?,
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    let embedded = embedding(builder, &decoder)?;
    let mut x = embedded;
    for index in 0..layers(builder)? {
        builder.set_layer("blk.", Some(index));
        x = layer(builder, x, index, &decoder)?;
        let weight = builder.weight("layer_output_scale.weight")?;
        let skip = builder.op(MulWeight { x: embedded, weight });
        x = builder.add(x, skip);
    }
    builder.set_layer("", None);
    finish(builder, x, &decoder)
}

/// Attention with a QK-norm after RoPE, and a gain for each query head.
fn attention_with_gain(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    attend: Attend,
) -> Result<ValueId, Finding> {
    let [query, key, value] = project_qkv(builder, x, &attend)?;
    let heads = [attend.heads.heads, attend.heads.heads_kv];
    let [query, key] = [(query, heads[0]), (key, heads[1])].map(|(x, heads)| {
        let x = apply_rope(builder, x, heads, &attend.rope);
        builder.norm_without_weight(x, attend.norm, heads)
    });
    let weight = builder.weight("attn_q_norm.weight")?;
    let query = builder.op(MulWeight { x: query, weight });
    let attended = attend_to(builder, [query, key, value], &attend);
    attention_output(builder, x, attended, &attend)
}
