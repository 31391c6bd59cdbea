//! KV sharing: the last layers use the KV cache of earlier ones (Gemma 3n and 4).

use gguf::Finding;
use gguf_graph::{KvSource, State, ValueId};

use crate::blocks::attention::{Attend, Heads, attend_in, attention_output, head_norm};
use crate::blocks::{apply_rope, layers};
use crate::graph::Builder;

/// KV caches of the last layers that have their own: with a sliding window, and without.
pub(crate) struct Shared {
    /// Number of the first layers, which have their own KV cache.
    own: u64,
    windowed: Option<KvSource>,
    whole: Option<KvSource>,
}

impl Shared {
    /// Returns the state before the first layer.
    pub fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        const SHARING: &str = "attention.shared_kv_layers";
        let sharing = match builder.hparams.value(SHARING) {
            Some(_) => builder.hparams.u64(SHARING)?,
            None => 0,
        };
        let own = layers(builder)?.saturating_sub(sharing);
        Ok(Self { own, windowed: None, whole: None })
    }
}

/// Adds the attention of a layer. Values have an RMS norm, and are the keys where the layer has no value
/// projection.
pub(crate) fn shared_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    attend: &Attend,
    shared: &mut Shared,
) -> Result<ValueId, Finding> {
    let Heads { heads, heads_kv, key_len, .. } = attend.heads;
    let normed = |builder: &mut Builder<'_>, x, name: &str, heads| {
        let x = head_norm(builder, x, name, attend.norm, heads, key_len);
        apply_rope(builder, x, heads, &attend.rope)
    };
    let query = builder.matmul(x, "attn_q")?;
    let query = normed(builder, query, "attn_q_norm", heads);
    let has_window = attend.mask.is_sliding_window();
    let is_own = layer < shared.own;
    let place = if has_window { &mut shared.windowed } else { &mut shared.whole };
    if is_own {
        let key = builder.matmul(x, "attn_k")?;
        let value = if builder.has("attn_v.weight") { builder.matmul(x, "attn_v")? } else { key };
        let key = normed(builder, key, "attn_k_norm", heads_kv);
        let value = builder.norm_without_weight(value, attend.norm, heads_kv);
        let [_, keys, values] = attend.heads.widths();
        let state = builder.state(State::kv_cache(keys, values));
        *place = Some(KvSource::Cached { key, value, state });
    }
    let memory = place.ok_or_else(|| {
        Finding::error("key-value", "a layer shares keys and values, and none before it has some")
            .help("convert the model again")
    })?;
    let attended = attend_in(builder, query, memory, attend);
    attention_output(builder, x, attended, attend)
}
