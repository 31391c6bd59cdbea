//! Self-attention of a layer.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Attention, AttentionTemperature, BlockSelection, Clamp,
    CompressedKv, KvSource, Mask, Mul, PositionBias, RopeParameters, Slice, State, ValueId,
};

use crate::blocks::apply_rope;
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Head counts and sizes of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub heads: u32,
    pub heads_kv: u32,
    pub key_len: u32,
    pub value_len: u32,
}

impl Heads {
    /// Reads the hyper-parameters.
    pub fn of(builder: &Builder<'_>, layer: u64) -> Result<Self, Finding> {
        Ok(Self {
            heads: builder.size_in_layer(key::ATTENTION_HEAD_COUNT, layer)?,
            heads_kv: builder.size_in_layer(key::ATTENTION_HEAD_COUNT_KV, layer)?,
            key_len: builder.size_in_layer(key::ATTENTION_KEY_LENGTH, layer)?,
            value_len: builder.size_in_layer(key::ATTENTION_VALUE_LENGTH, layer)?,
        })
    }

    /// Reads the hyper-parameters of a layer with or without a sliding window, which may have other head sizes.
    pub fn within(builder: &Builder<'_>, layer: u64, has_window: bool) -> Result<Self, Finding> {
        let of_layer = Self::of(builder, layer)?;
        if !has_window || builder.hparams.value(key::ATTENTION_KEY_LENGTH_SWA).is_none() {
            return Ok(of_layer);
        }
        let key_len = builder.size(key::ATTENTION_KEY_LENGTH_SWA)?;
        let value_len = builder.size(key::ATTENTION_VALUE_LENGTH_SWA)?;
        Ok(Self { key_len, value_len, ..of_layer })
    }

    /// Returns the sizes of queries, keys and values.
    pub fn widths(self) -> [u32; 3] {
        let Self { heads, heads_kv, key_len, value_len } = self;
        [(heads, key_len), (heads_kv, key_len), (heads_kv, value_len)]
            .map(|(count, len)| count.saturating_mul(len))
    }
}

/// Attention temperature: queries are scaled by the position, in steps of `length`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Temperature {
    pub length: u32,
    pub scale: f32,
}

/// Parameters of the attention of a layer.
#[derive(Clone, Debug)]
pub(crate) struct Attend {
    pub heads: Heads,
    pub scale: f32,
    pub mask: Mask,
    pub rope: Option<RopeParameters>,
    /// QK-norm, where the layer has its weights.
    pub norm: Norm,
    /// Whether QK-norm follows RoPE.
    pub qk_norm_after_rope: bool,
    /// Attention temperature of the queries.
    pub temperature: Option<Temperature>,
    pub bias: PositionBias,
    pub soft_cap: Option<f32>,
    /// Tokens chosen by an indexer, if attention is sparse.
    pub selection: Option<BlockSelection>,
    /// Compressed KV blocks that it attends to as well.
    pub compressed: Option<CompressedKv>,
    /// Clamp of queries, keys and values.
    pub clamp: Option<f32>,
    /// Activation function of the output gate, where the layer has one.
    pub gate: ActivationFunction,
    /// Whether keys and values go to the KV cache.
    pub cached: bool,
}

impl Attend {
    /// Causal attention without RoPE, norms or bias.
    pub fn plain(heads: Heads, norm: Norm) -> Self {
        Self {
            heads,
            scale: 1.0 / (heads.key_len as f32).sqrt(),
            mask: Mask::Causal,
            rope: None,
            norm,
            qk_norm_after_rope: false,
            temperature: None,
            bias: PositionBias::None,
            soft_cap: None,
            selection: None,
            compressed: None,
            clamp: None,
            gate: ActivationFunction::Sigmoid,
            cached: true,
        }
    }
}

/// Adds the attention of a layer to its normed input: projections, QK-norm, RoPE, attention, gate, output
/// projection.
pub(crate) fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    let given = project_qkv(builder, x, attend)?;
    let attended = attend_qkv(builder, given, attend);
    attention_output(builder, x, attended, attend)
}

/// Adds QK-norm, RoPE and attention to projected queries, keys and values, without gate and output projection.
pub(crate) fn attend_qkv(
    builder: &mut Builder<'_>,
    [mut query, mut key, value]: [ValueId; 3],
    attend: &Attend,
) -> ValueId {
    let Heads { heads, heads_kv, key_len, .. } = attend.heads;
    let rotate = |builder: &mut Builder<'_>, [query, key]: [ValueId; 2]| {
        [(query, heads), (key, heads_kv)]
            .map(|(x, heads)| apply_rope(builder, x, heads, &attend.rope))
    };
    if attend.qk_norm_after_rope {
        [query, key] = rotate(builder, [query, key]);
    }
    query = head_norm(builder, query, "attn_q_norm", attend.norm, heads, key_len);
    key = head_norm(builder, key, "attn_k_norm", attend.norm, heads_kv, key_len);
    if !attend.qk_norm_after_rope {
        [query, key] = rotate(builder, [query, key]);
    }
    if let Some(Temperature { length, scale }) = attend.temperature {
        query = builder.op(AttentionTemperature { x: query, offset: 0, length, scale });
    }
    attend_to(builder, [query, key, value], attend)
}

/// Adds gate, norm and output projection of the attention to `x`, as far as the layer has them. A gate has one
/// value per channel or per head.
pub(crate) fn attention_output(
    builder: &mut Builder<'_>,
    x: ValueId,
    mut attended: ValueId,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    if builder.has("attn_gate.weight") {
        let gate = builder.matmul(x, "attn_gate")?;
        let gate = builder.op(Activation { x: gate, function: attend.gate });
        attended = builder.op(Mul { a: attended, b: gate });
    }
    if builder.has_norm("attn_sub_norm") {
        attended = builder.norm(attended, "attn_sub_norm", attend.norm);
    }
    // Encoder-decoder models have another name for it.
    let output = if builder.has("attn_o.weight") { "attn_o" } else { "attn_output" };
    builder.matmul(attended, output)
}

/// Adds the attention of queries to keys and values, through the KV cache if the layer is cached.
pub(crate) fn attend_to(
    builder: &mut Builder<'_>,
    [query, key, value]: [ValueId; 3],
    attend: &Attend,
) -> ValueId {
    let memory = if attend.cached {
        let [_, keys, values] = attend.heads.widths();
        let state = builder.state(State::kv_cache(keys, values));
        KvSource::Cached { key, value, state }
    } else {
        KvSource::Batch { key, value }
    };
    attend_in(builder, query, memory, attend)
}

/// Adds the attention of queries to a source of keys and values.
pub(crate) fn attend_in(
    builder: &mut Builder<'_>,
    query: ValueId,
    memory: KvSource,
    attend: &Attend,
) -> ValueId {
    let Heads { heads, heads_kv, key_len, value_len } = attend.heads;
    let sinks = builder.find("attn_sinks.weight");
    builder.op(Attention {
        query,
        kv: memory,
        heads,
        heads_kv,
        key_len,
        value_len,
        scale: attend.scale,
        mask: attend.mask,
        position_bias: attend.bias,
        soft_cap: attend.soft_cap,
        selection: attend.selection,
        compressed: attend.compressed,
        sinks,
    })
}

/// Adds the projections of queries, keys and values, fused or separate.
pub(crate) fn project_qkv(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<[ValueId; 3], Finding> {
    let clamped = |builder: &mut Builder<'_>, x| match attend.clamp {
        Some(bound) => builder.op(Clamp { x, bound }),
        None => x,
    };
    if !builder.has("attn_qkv.weight") {
        let mut values = [x; 3];
        for (value, name) in values.iter_mut().zip(["attn_q", "attn_k", "attn_v"]) {
            let made = builder.matmul(x, name)?;
            *value = clamped(builder, made);
        }
        return Ok(values);
    }
    let fused = builder.matmul(x, "attn_qkv")?;
    let fused = clamped(builder, fused);
    let mut start = 0;
    Ok(attend.heads.widths().map(|len| {
        let part = builder.op(Slice { x: fused, groups: 1, start, len });
        start = start.saturating_add(len);
        part
    }))
}

/// Adds the QK-norm of queries or keys: per head or over the whole row, by the length of the weight. Without a
/// weight it returns `x`.
pub(crate) fn head_norm(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    norm: Norm,
    heads: u32,
    len: u32,
) -> ValueId {
    let weight = format!("{name}.weight");
    if !builder.has(&weight) {
        return x;
    }
    let by_head = builder.extent(&weight, 0) == u64::from(len);
    builder.group_norm(x, name, norm, if by_head { heads } else { 1 })
}
