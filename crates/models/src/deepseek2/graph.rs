//! DeepSeek 2 and 3, PLM and MiniCPM 3: keys and values are compressed, and experts follow some
//! dense layers.

use gguf::Finding;
use gguf_graph::{
    AttentionTemperature, BatchedMatmul, Concat, Gating, Op, RopeLayout, RopeParameters,
    RopeScaling, Slice, ValueId,
};

use crate::blocks::{
    Attend, Decoder, Heads, attend_to, attention_output, decoder, sharper, turned,
};
use crate::graph::Builder;
use crate::schema::key;

/// Tokens of GLM 4.7 Flash.
const GLM_VOCABULARY: u64 = 154_880;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder { attention, ..Decoder::gated(builder, RopeLayout::Interleaved)? };
    let mut scale = scale(builder)?;
    if let Some(rotation) = &mut family.rotation {
        scale *= sharpen(builder, rotation)?;
    }
    family.attention_scale = Some(scale);
    family.routing.normalize = false;
    if has_sigmoid(builder)? {
        family.routing.gating = Gating::Sigmoid;
    }
    decoder(builder, &family)
}

/// Factor of the scores, by the length of keys as they are unpacked.
pub(crate) fn scale(builder: &Builder<'_>) -> Result<f32, Finding> {
    Ok(1.0 / (Widths::of(builder)?.key as f32).sqrt())
}

/// Whether a model without a key for its gate has that of DeepSeek 3: if it has the bias of its
/// choice, or is GLM 4.7 Flash. (llama.cpp looks for the latter only.)
fn has_sigmoid(builder: &Builder<'_>) -> Result<bool, Finding> {
    let first = builder.hyper.u64(key::LEADING_DENSE_BLOCK_COUNT)?;
    let layers = builder.hyper.u64(key::BLOCK_COUNT)?;
    let is_glm =
        matches!(layers, 47 | 48) && builder.extent("token_embd.weight", 1) == GLM_VOCABULARY;
    Ok(is_glm || builder.has(&format!("blk.{first}.exp_probs_b.bias")))
}

/// By how much attention is sharper under YaRN. Where the model says by how much, all dimensions are
/// sharpened by the scale of the scores, so that rotated ones need not be longer.
pub(crate) fn sharpen(
    builder: &Builder<'_>,
    rotation: &mut RopeParameters,
) -> Result<f32, Finding> {
    let RopeScaling::Yarn { factor, .. } = rotation.scaling else { return Ok(1.0) };
    // The key holds a tenth, for this architecture only.
    let by = 10.0 * builder.hyper.f32(key::ROPE_SCALING_YARN_LOG_MULTIPLIER)?;
    if by == 0.0 {
        return Ok(1.0);
    }
    if builder.stated(key::ROPE_SCALING_YARN_ATTN_FACTOR)?.is_none() {
        rotation.attention_factor = builder.hyper.f32(key::ROPE_SCALING_ATTN_FACTOR)?;
    }
    Ok(sharper(factor, by).powi(2))
}

/// Lengths of heads as they are attended to by the definition, without what saves work.
#[derive(Clone, Copy)]
pub(crate) struct Widths {
    /// What keys and values of all heads are compressed to.
    rank: u32,
    /// Length of a head of queries and keys.
    pub key: u32,
    /// Dimensions of a key that rotate: the last.
    rotated: u32,
    value: u32,
}

impl Widths {
    /// Those of the hyper-parameters.
    pub fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        // Files from before 2025 have the length of a head in the usual key.
        let either = |builder: &Builder<'_>, name: &str| {
            let own = format!("{name}_mla");
            let name = if builder.hyper.stated(&own).is_some() { &own } else { name };
            builder.size(name)
        };
        Ok(Self {
            rank: builder.size(key::ATTENTION_KV_LORA_RANK)?,
            key: either(builder, "attention.key_length")?,
            rotated: builder.size(key::ROPE_DIMENSION_COUNT)?,
            value: either(builder, "attention.value_length")?,
        })
    }

    /// Those of layers with a window, in models that have others there.
    pub fn of_window(builder: &Builder<'_>) -> Result<Self, Finding> {
        Ok(Self {
            rank: builder.size(key::ATTENTION_KV_LORA_RANK_SWA)?,
            key: builder.size(key::ATTENTION_KEY_LENGTH_MLA_SWA)?,
            rotated: builder.size(key::ROPE_DIMENSION_COUNT)?,
            value: builder.size(key::ATTENTION_VALUE_LENGTH_MLA_SWA)?,
        })
    }

    /// Dimensions of a key that do not rotate.
    fn still(self) -> u32 {
        self.key.saturating_sub(self.rotated)
    }
}

/// Attention of a layer, without an indexer.
pub(crate) fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let compressed = compressed_queries(builder, x, &attend)?;
    self::attend(builder, x, compressed, Widths::of(builder)?, &mut attend)
}

/// What the queries of a layer are made of: something narrower than its input, in models that
/// compress them too.
pub(crate) fn compressed_queries(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    if !builder.has("attn_q_a.weight") {
        return Ok(x);
    }
    let compressed = builder.product(x, "attn_q_a")?;
    Ok(builder.norm(compressed, "attn_q_a_norm", attend.norm))
}

/// Attention of a layer to its normed input.
pub(crate) fn attend(
    builder: &mut Builder<'_>,
    x: ValueId,
    compressed: ValueId,
    widths: Widths,
    attend: &mut Attend,
) -> Result<ValueId, Finding> {
    let Widths { rank, rotated, .. } = widths;
    let matrix = if builder.has("attn_q_b.weight") { "attn_q_b" } else { "attn_q" };
    let query = builder.product(compressed, matrix)?;
    let both = builder.product(x, "attn_kv_a_mqa")?;
    let compressed = builder.op(Slice { x: both, groups: 1, start: 0, len: rank });
    let compressed = builder.norm(compressed, "attn_kv_a_norm", attend.norm);
    let turned = (rotated > 0).then(|| turned_key(builder, both, widths, attend));
    let attended = if builder.has("attn_k_b.weight") {
        attend_compressed(builder, [query, compressed], turned, widths, attend)?
    } else {
        attend_unpacked(builder, [query, compressed], turned, widths, attend)?
    };
    attention_output(builder, x, attended, attend)
}

/// The part of keys that rotates, which is one for all heads.
fn turned_key(
    builder: &mut Builder<'_>,
    both: ValueId,
    Widths { rank, rotated, .. }: Widths,
    attend: &Attend,
) -> ValueId {
    let mut turned = builder.op(Slice { x: both, groups: 1, start: rank, len: rotated });
    if builder.has_norm("attn_k_norm") {
        turned = builder.norm(turned, "attn_k_norm", attend.norm);
    }
    rotate(builder, turned, 1, 0, attend)
}

/// What unpacks keys is applied to queries, and what unpacks values to the result: all heads attend
/// to what is compressed.
fn attend_compressed(
    builder: &mut Builder<'_>,
    [query, compressed]: [ValueId; 2],
    turned: Option<ValueId>,
    widths: Widths,
    attend: &mut Attend,
) -> Result<ValueId, Finding> {
    let Widths { rank, rotated, .. } = widths;
    let (heads, still) = (attend.heads.heads, widths.still());
    let weight = builder.weight("attn_k_b.weight")?;
    let (query, key) = match turned {
        None => (builder.op(BatchedMatmul { x: query, weight }), compressed),
        Some(turned) => {
            let a = builder.op(Slice { x: query, groups: heads, start: 0, len: still });
            let a = builder.op(BatchedMatmul { x: a, weight });
            let b = builder.op(Slice { x: query, groups: heads, start: still, len: rotated });
            let b = rotate(builder, b, heads, 0, attend);
            let query = builder.op(Concat { a, b, groups: heads, broadcast: false });
            let both = Op::Concat(Concat { a: compressed, b: turned, groups: 1, broadcast: false });
            (query, builder.op(both))
        }
    };
    let query = temper(builder, query)?;
    let key_len = rank.saturating_add(rotated);
    attend.heads = Heads { heads, heads_kv: 1, key_len, value_len: rank };
    let x = attend_to(builder, [query, key, compressed], attend);
    let weight = builder.weight("attn_v_b.weight")?;
    Ok(builder.op(BatchedMatmul { x, weight }))
}

/// Keys and values are unpacked for each head, as files from before 2025 have it.
fn attend_unpacked(
    builder: &mut Builder<'_>,
    [query, compressed]: [ValueId; 2],
    turned: Option<ValueId>,
    widths: Widths,
    attend: &mut Attend,
) -> Result<ValueId, Finding> {
    let Widths { key: key_len, value: value_len, .. } = widths;
    let (heads, still) = (attend.heads.heads, widths.still());
    let x = builder.product(compressed, "attn_kv_b")?;
    let mut key = builder.op(Slice { x, groups: heads, start: 0, len: still });
    if let Some(turned) = turned {
        key = builder.op(Concat { a: key, b: turned, groups: heads, broadcast: true });
    }
    let value = builder.op(Slice { x, groups: heads, start: still, len: value_len });
    let query = rotate(builder, query, heads, still, attend);
    let query = temper(builder, query)?;
    attend.heads = Heads { heads, heads_kv: heads, key_len, value_len };
    Ok(attend_to(builder, [query, key, value], attend))
}

/// Rotates heads from a dimension on.
fn rotate(
    builder: &mut Builder<'_>,
    x: ValueId,
    heads: u32,
    start: u32,
    attend: &Attend,
) -> ValueId {
    let rotation = attend.rotation.clone().map(|rotation| RopeParameters { start, ..rotation });
    turned(builder, x, heads, &rotation)
}

/// Queries sharpened with the position, in models that do so.
fn temper(builder: &mut Builder<'_>, x: ValueId) -> Result<ValueId, Finding> {
    let scale = builder.known(key::ATTENTION_TEMPERATURE_SCALE)?.unwrap_or(0.0);
    if scale == 0.0 {
        return Ok(x);
    }
    let length = builder.size(key::ATTENTION_TEMPERATURE_LENGTH)?;
    Ok(builder.op(AttentionTemperature { x, offset: 0, length, scale }))
}
