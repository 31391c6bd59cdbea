//! Graph of `deepseek2`, `mistral4`, PLM and MiniCPM 3: multi-head latent attention (MLA).
//! `deepseek32`, `glm-dsa` and others share its parts.

use gguf::Finding;
use gguf_graph::{
    AttentionTemperature, BatchedMatmul, Concat, Gating, Op, RopeLayout, RopeParameters,
    RopeScaling, Slice, ValueId,
};

use crate::blocks::{
    self, Attend, Decoder, Heads, apply_rope, attend_to, attention_output, yarn_attention_factor,
};
use crate::graph::Builder;
use crate::schema::key;

/// Vocabulary size of GLM 4.7 Flash.
const GLM_VOCAB_SIZE: u64 = 154_880;

/// The router is a sigmoid in DeepSeek V3, else a softmax; expert weights are not normalized by
/// default.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder =
        Decoder { attention, ..Decoder::llama_like(builder, RopeLayout::Interleaved)? };
    let mut scale = softmax_scale(builder)?;
    if let Some(rope) = &mut decoder.rope {
        scale *= yarn_mscale(builder, rope)?;
    }
    decoder.attention_scale = Some(scale);
    decoder.routing.normalize = false;
    if has_sigmoid_router(builder)? {
        decoder.routing.gating = Gating::Sigmoid;
    }
    blocks::decoder(builder, &decoder)
}

/// Returns the softmax scale `1 / sqrt(key dimensions)`, of keys before weight absorption.
pub(crate) fn softmax_scale(builder: &Builder<'_>) -> Result<f32, Finding> {
    Ok(1.0 / (MlaDims::of(builder)?.key as f32).sqrt())
}

/// Returns whether a model without `expert_gating_func` has the sigmoid router: if it has a
/// selection bias, or is GLM 4.7 Flash. (llama.cpp recognizes the latter only.)
fn has_sigmoid_router(builder: &Builder<'_>) -> Result<bool, Finding> {
    let first = builder.hparams.u64(key::LEADING_DENSE_BLOCK_COUNT)?;
    let layers = builder.hparams.u64(key::BLOCK_COUNT)?;
    let is_glm =
        matches!(layers, 47 | 48) && builder.extent("token_embd.weight", 1) == GLM_VOCAB_SIZE;
    Ok(is_glm || builder.has(&format!("blk.{first}.exp_probs_b.bias")))
}

/// Returns YaRN's factor of the softmax scale, `mscale(factor, mscale_all_dim)^2`. Where it
/// applies, queries and keys are not scaled by RoPE, so that dimensions with and without RoPE have
/// the same scale.
pub(crate) fn yarn_mscale(
    builder: &Builder<'_>,
    rope: &mut RopeParameters,
) -> Result<f32, Finding> {
    let RopeScaling::Yarn { factor, .. } = rope.scaling else { return Ok(1.0) };
    // For this architecture the key holds a tenth of the multiplier.
    let multiplier = 10.0 * builder.hparams.f32(key::ROPE_SCALING_YARN_LOG_MULTIPLIER)?;
    if multiplier == 0.0 {
        return Ok(1.0);
    }
    if builder.f32_if_present(key::ROPE_SCALING_YARN_ATTN_FACTOR)?.is_none() {
        rope.attention_factor = builder.hparams.f32(key::ROPE_SCALING_ATTN_FACTOR)?;
    }
    Ok(yarn_attention_factor(factor, multiplier).powi(2))
}

/// Dimensions of MLA before weight absorption.
#[derive(Clone, Copy)]
pub(crate) struct MlaDims {
    /// KV LoRA rank: width of the latent that all heads share.
    rank: u32,
    /// Dimensions of a head of queries and keys.
    pub key: u32,
    /// Dimensions with RoPE: the last of a head.
    rope: u32,
    /// Dimensions of a value head.
    value: u32,
}

impl MlaDims {
    /// Reads the dimensions from the metadata.
    pub fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        // Files from before 2025 have the head dimension in the key without `_mla`.
        let either = |builder: &Builder<'_>, name: &str| {
            let own = format!("{name}_mla");
            let name = if builder.hparams.value(&own).is_some() { &own } else { name };
            builder.size(name)
        };
        Ok(Self {
            rank: builder.size(key::ATTENTION_KV_LORA_RANK)?,
            key: either(builder, "attention.key_length")?,
            rope: builder.size(key::ROPE_DIMENSION_COUNT)?,
            value: either(builder, "attention.value_length")?,
        })
    }

    /// Reads the dimensions of layers with a sliding window, in models where they differ.
    pub fn of_sliding_window(builder: &Builder<'_>) -> Result<Self, Finding> {
        Ok(Self {
            rank: builder.size(key::ATTENTION_KV_LORA_RANK_SWA)?,
            key: builder.size(key::ATTENTION_KEY_LENGTH_MLA_SWA)?,
            rope: builder.size(key::ROPE_DIMENSION_COUNT)?,
            value: builder.size(key::ATTENTION_VALUE_LENGTH_MLA_SWA)?,
        })
    }

    /// Returns the dimensions of a key without RoPE.
    fn nope(self) -> u32 {
        self.key.saturating_sub(self.rope)
    }
}

/// Multi-head latent attention without an indexer.
pub(crate) fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let latent = query_latent(builder, x, &attend)?;
    mla(builder, x, latent, MlaDims::of(builder)?, &mut attend)
}

/// Returns the input of the query projection: the normalized query latent (`q_lora_rank`), or `x`
/// in models without one.
pub(crate) fn query_latent(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    if !builder.has("attn_q_a.weight") {
        return Ok(x);
    }
    let latent = builder.matmul(x, "attn_q_a")?;
    Ok(builder.norm(latent, "attn_q_a_norm", attend.norm))
}

/// Multi-head latent attention to the normalized input `x`, with the query latent of
/// [`query_latent`].
pub(crate) fn mla(
    builder: &mut Builder<'_>,
    x: ValueId,
    latent: ValueId,
    dims: MlaDims,
    attend: &mut Attend,
) -> Result<ValueId, Finding> {
    let MlaDims { rank, rope, .. } = dims;
    let matrix = if builder.has("attn_q_b.weight") { "attn_q_b" } else { "attn_q" };
    let query = builder.matmul(latent, matrix)?;
    let latent_and_rope = builder.matmul(x, "attn_kv_a_mqa")?;
    let latent = builder.op(Slice { x: latent_and_rope, groups: 1, start: 0, len: rank });
    let latent = builder.norm(latent, "attn_kv_a_norm", attend.norm);
    let key_rope = (rope > 0).then(|| rope_key(builder, latent_and_rope, dims, attend));
    let attended = if builder.has("attn_k_b.weight") {
        attend_absorbed(builder, [query, latent], key_rope, dims, attend)?
    } else {
        attend_expanded(builder, [query, latent], key_rope, dims, attend)?
    };
    attention_output(builder, x, attended, attend)
}

/// Returns the part of keys with RoPE, which all heads share (decoupled RoPE).
fn rope_key(
    builder: &mut Builder<'_>,
    latent_and_rope: ValueId,
    MlaDims { rank, rope, .. }: MlaDims,
    attend: &Attend,
) -> ValueId {
    let mut key_rope = builder.op(Slice { x: latent_and_rope, groups: 1, start: rank, len: rope });
    if builder.has_norm("attn_k_norm") {
        key_rope = builder.norm(key_rope, "attn_k_norm", attend.norm);
    }
    rope_from(builder, key_rope, 1, 0, attend)
}

/// Attention with absorbed projections: `attn_k_b` is applied to the query and `attn_v_b` to the
/// result, so that all heads attend to the latent as one KV head.
fn attend_absorbed(
    builder: &mut Builder<'_>,
    [query, latent]: [ValueId; 2],
    key_rope: Option<ValueId>,
    dims: MlaDims,
    attend: &mut Attend,
) -> Result<ValueId, Finding> {
    let MlaDims { rank, rope, .. } = dims;
    let (heads, nope) = (attend.heads.heads, dims.nope());
    let weight = builder.weight("attn_k_b.weight")?;
    let (query, key) = match key_rope {
        None => (builder.op(BatchedMatmul { x: query, weight }), latent),
        Some(key_rope) => {
            let a = builder.op(Slice { x: query, groups: heads, start: 0, len: nope });
            let a = builder.op(BatchedMatmul { x: a, weight });
            let b = builder.op(Slice { x: query, groups: heads, start: nope, len: rope });
            let b = rope_from(builder, b, heads, 0, attend);
            let query = builder.op(Concat { a, b, groups: heads, broadcast: false });
            let latent_and_rope =
                Op::Concat(Concat { a: latent, b: key_rope, groups: 1, broadcast: false });
            (query, builder.op(latent_and_rope))
        }
    };
    let query = apply_temperature(builder, query)?;
    let key_len = rank.saturating_add(rope);
    attend.heads = Heads { heads, heads_kv: 1, key_len, value_len: rank };
    let x = attend_to(builder, [query, key, latent], attend);
    let weight = builder.weight("attn_v_b.weight")?;
    Ok(builder.op(BatchedMatmul { x, weight }))
}

/// Attention with keys and values expanded per head by `attn_kv_b`, for files from before 2025.
fn attend_expanded(
    builder: &mut Builder<'_>,
    [query, latent]: [ValueId; 2],
    key_rope: Option<ValueId>,
    dims: MlaDims,
    attend: &mut Attend,
) -> Result<ValueId, Finding> {
    let MlaDims { key: key_len, value: value_len, .. } = dims;
    let (heads, nope) = (attend.heads.heads, dims.nope());
    let x = builder.matmul(latent, "attn_kv_b")?;
    let mut key = builder.op(Slice { x, groups: heads, start: 0, len: nope });
    if let Some(key_rope) = key_rope {
        key = builder.op(Concat { a: key, b: key_rope, groups: heads, broadcast: true });
    }
    let value = builder.op(Slice { x, groups: heads, start: nope, len: value_len });
    let query = rope_from(builder, query, heads, nope, attend);
    let query = apply_temperature(builder, query)?;
    attend.heads = Heads { heads, heads_kv: heads, key_len, value_len };
    Ok(attend_to(builder, [query, key, value], attend))
}

/// Applies RoPE to heads from dimension `start` on.
fn rope_from(
    builder: &mut Builder<'_>,
    x: ValueId,
    heads: u32,
    start: u32,
    attend: &Attend,
) -> ValueId {
    let rope = attend.rope.clone().map(|rope| RopeParameters { start, ..rope });
    apply_rope(builder, x, heads, &rope)
}

/// Applies the attention temperature to queries, in models that have one.
fn apply_temperature(builder: &mut Builder<'_>, x: ValueId) -> Result<ValueId, Finding> {
    let scale = builder.f32_or_default(key::ATTENTION_TEMPERATURE_SCALE)?.unwrap_or(0.0);
    if scale == 0.0 {
        return Ok(x);
    }
    let length = builder.size(key::ATTENTION_TEMPERATURE_LENGTH)?;
    Ok(builder.op(AttentionTemperature { x, offset: 0, length, scale }))
}
