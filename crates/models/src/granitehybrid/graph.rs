//! Computation graph of Granite 4 and Bamba: Mamba 2 in most layers, attention in the others.

use gguf::Finding;
use gguf_graph::{Concat, RopeLayout, Slice, ValueId};

use crate::blocks::{
    Attend, Decoder, Heads, SsmSizes, attend_qkv, attention_output, is_state_space, project_qkv,
};
use crate::graph::Builder;
use crate::{blocks, granite};

/// Builds a Granite decoder with Mamba 2 in place of attention in SSM layers.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention: |builder, x, _, attend| match is_state_space(builder) {
            true => SsmSizes::of(builder)?.mamba2(builder, x, attend.norm),
            false => partial_rope_attention(builder, x, attend),
        },
        ..granite::graph::granite_decoder(builder)?
    };
    blocks::decoder(builder, &decoder)
}

/// Adds attention. The converter permutes the rows of Q and K for interleaved RoPE over whole
/// heads. Where only a part of each head is rotated, the permutation is undone and RoPE uses the
/// NeoX layout. (llama.cpp uses the interleaved layout there too.)
fn partial_rope_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let Heads { heads, heads_kv, key_len, .. } = attend.heads;
    let [mut query, mut key, value] = project_qkv(builder, x, &attend)?;
    if let Some(rope) = attend.rope.as_mut().filter(|rope| rope.dimensions < key_len) {
        rope.layout = RopeLayout::Neox;
        [query, key] = [(query, heads), (key, heads_kv)].map(|(x, heads)| {
            let groups = heads.saturating_mul(key_len / 2);
            let [a, b] = [0, 1].map(|start| builder.op(Slice { x, groups, start, len: 1 }));
            builder.op(Concat { a, b, groups: heads, broadcast: false })
        });
    }
    let attended = attend_qkv(builder, [query, key, value], &attend);
    attention_output(builder, x, attended, &attend)
}
