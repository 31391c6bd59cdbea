//! Attention of a decoder to what its encoder says.

use gguf::Finding;

use crate::blocks::Heads;
use crate::graph::Builder;
use gguf_graph::{Attention, KvSource, KvStore, Mask, PositionBias};
use gguf_graph::{State, StateId, ValueId};

/// Puts away the keys and values that the layers `dec.blk.` of a decoder make of the encoder's output;
/// says where.
pub(crate) fn store_cross(
    builder: &mut Builder<'_>,
    x: ValueId,
    layers: u64,
    heads: Heads,
) -> Result<Vec<StateId>, Finding> {
    let [_, keys, values] = heads.widths();
    let mut states = Vec::new();
    for layer in 0..layers {
        builder.at("dec.blk.", Some(layer));
        let key = builder.product(x, "cross_attn_k")?;
        let value = builder.product(x, "cross_attn_v")?;
        let state = builder.state(State::EncoderKv { key_width: keys, value_width: values });
        builder.op(KvStore { key, value, state });
        states.push(state);
    }
    builder.at("", None);
    Ok(states)
}

/// Attention of a layer of the decoder to what stands in a state.
pub(crate) fn cross_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    state: StateId,
    heads: Heads,
    scale: f32,
) -> Result<ValueId, Finding> {
    let Heads { heads, heads_kv, key_len, value_len } = heads;
    let query = builder.product(x, "cross_attn_q")?;
    let attended = builder.op(Attention {
        query,
        kv: KvSource::Encoder { state },
        heads,
        heads_kv,
        key_len,
        value_len,
        scale,
        mask: Mask::Full,
        position_bias: PositionBias::None,
        soft_cap: None,
        selection: None,
        compressed: None,
        sinks: None,
    });
    builder.product(attended, "cross_attn_o")
}
