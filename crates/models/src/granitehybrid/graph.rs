//! State spaces in place of attention or beside it: Jamba, Granite 4 and Bamba, Falcon H1, Nemotron-H.

use gguf::Finding;
use gguf_graph::{Concat, RopeLayout, Slice, ValueId};

use crate::blocks::is_state_space;
use crate::blocks::{
    Attend, Decoder, Heads, StateSpace, attended, attention_output, decoder, queries_keys_values,
};
use crate::granite;
use crate::graph::Builder;

/// Granite 4, and Bamba, of whose heads a part rotates.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, _, attend| match is_state_space(builder) {
            true => StateSpace::of(builder)?.second(builder, x, attend.norm),
            false => partly_rotated(builder, x, attend),
        },
        ..granite::graph::usual(builder)?
    };
    decoder(builder, &family)
}

/// Attention by queries and keys whose heads stand in the order in which neighbours rotate together. Where
/// only a part of a head rotates, these are no neighbours: heads get the order back that they had before. (There
/// llama.cpp rotates neighbours all the same.)
fn partly_rotated(
    builder: &mut Builder<'_>,
    x: ValueId,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let Heads { heads, heads_kv, key_len, .. } = attend.heads;
    let [mut query, mut key, value] = queries_keys_values(builder, x, &attend)?;
    if let Some(rotation) =
        attend.rotation.as_mut().filter(|rotation| rotation.dimensions < key_len)
    {
        rotation.layout = RopeLayout::Neox;
        [query, key] = [(query, heads), (key, heads_kv)].map(|(x, heads)| {
            let groups = heads.saturating_mul(key_len / 2);
            let [a, b] = [0, 1].map(|start| builder.op(Slice { x, groups, start, len: 1 }));
            builder.op(Concat { a, b, groups: heads, broadcast: false })
        });
    }
    let made = attended(builder, [query, key, value], &attend);
    attention_output(builder, x, made, &attend)
}
