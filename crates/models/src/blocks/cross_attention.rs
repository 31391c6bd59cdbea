//! Cross-attention of a decoder to the output of its encoder.

use gguf::Finding;
use gguf_graph::{Attention, KvSource, KvStore, Mask, PositionBias, State, StateId, ValueId};

use crate::blocks::Heads;
use crate::graph::Builder;

/// Stores the cross-attention keys and values of the decoder layers `dec.blk.`, computed from the encoder's
/// output, and returns the state of each layer.
pub(crate) fn store_cross_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layers: u64,
    heads: Heads,
) -> Result<Vec<StateId>, Finding> {
    let [_, keys, values] = heads.widths();
    let mut states = Vec::new();
    for layer in 0..layers {
        builder.set_layer("dec.blk.", Some(layer));
        let key = builder.matmul(x, "cross_attn_k")?;
        let value = builder.matmul(x, "cross_attn_v")?;
        let state = builder.state(State::EncoderKv { key_width: keys, value_width: values });
        builder.op(KvStore { key, value, state });
        states.push(state);
    }
    builder.set_layer("", None);
    Ok(states)
}

/// Adds the cross-attention of a decoder layer to the stored keys and values.
pub(crate) fn cross_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    state: StateId,
    heads: Heads,
    scale: f32,
) -> Result<ValueId, Finding> {
    let Heads { heads, heads_kv, key_len, value_len } = heads;
    let query = builder.matmul(x, "cross_attn_q")?;
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
    builder.matmul(attended, "cross_attn_o")
}
