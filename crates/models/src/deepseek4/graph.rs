//! DeepSeek 4: several streams of the residual; attention to a window and to blocks of tokens that
//! are compressed, among which an indexer chooses where blocks are short; experts that tokens
//! choose.

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, BatchedMatmul, BlockCompress, CompressedKv, Embedding, Index, Op,
    RopeLayout, RopeParameters, State, TopkIndexer, ValueId,
};

use crate::blocks::{
    Attend, Decoder, Heads, HyperConnections, Routing, attend, attend_to, beside_shared,
    bounded_gates, embedding, experts_by, finish, turned,
};
use crate::deepseek2;
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, RopeLayout::Interleaved)?;
    let streams = HyperConnections::of(builder, family.norm)?;
    let embedded = embedding(builder, &family)?;
    let x = streams.layers(
        builder,
        embedded,
        &family,
        &mut |builder, x, layer| attention(builder, x, layer, &family),
        &mut |builder, x, layer| network(builder, x, layer, &family),
    )?;
    let x = streams.last(builder, x)?;
    finish(builder, x, &family)
}

/// Attention of all heads to one key for each token, which is its value too.
fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let mut attend = attend(builder, layer, decoder)?;
    let Heads { heads, key_len, .. } = attend.heads;
    attend.heads = Heads { heads_kv: 1, value_len: key_len, ..attend.heads };
    let block = builder.listed(key::ATTENTION_COMPRESS_RATIOS, layer)?;
    attend.rotation = rotation(builder, block, decoder)?;
    let rotation = of_heads(&attend.rotation, key_len);
    let compressed = deepseek2::graph::compressed_queries(builder, x, &attend)?;
    let query = builder.product(compressed, "attn_q_b")?;
    let query = builder.weightless_norm(query, attend.norm, heads);
    let query = turned(builder, query, heads, &rotation);
    let key = builder.product(x, "attn_kv")?;
    let key = builder.norm(key, "attn_kv_a_norm", attend.norm);
    let key = turned(builder, key, 1, &rotation);
    if block > 0 {
        attend.blocks = Some(blocks(builder, x, compressed, block, &attend)?);
    }
    let attended = attend_to(builder, [query, key, key], &attend);
    // What was rotated as a key is not rotated as a value.
    let back = rotation.map(|rotation| RopeParameters { inverse: true, ..rotation });
    let attended = turned(builder, attended, heads, &back);
    let weight = builder.weight("attn_output_a.weight")?;
    let grouped = builder.op(BatchedMatmul { x: attended, weight });
    builder.product(grouped, "attn_output_b")
}

/// The rotation of a layer: positions are stretched where tokens are compressed, and there only.
fn rotation(
    builder: &Builder<'_>,
    block: u32,
    decoder: &Decoder,
) -> Result<Option<RopeParameters>, Finding> {
    let Some(rotation) = decoder.rotation.clone() else { return Ok(None) };
    if block == 0 {
        return Ok(Some(rotation.without_scaling()));
    }
    let base = builder.hyper.f32(key::ATTENTION_COMPRESS_ROPE_FREQ_BASE)?;
    Ok(Some(RopeParameters { freq_base: base, attention_factor: 1.0, ..rotation }))
}

/// The same of heads that are so long, whose last numbers rotate.
fn of_heads(rotation: &Option<RopeParameters>, len: u32) -> Option<RopeParameters> {
    let rotation = rotation.clone()?;
    Some(RopeParameters { start: len.saturating_sub(rotation.dimensions), ..rotation })
}

/// The blocks of tokens that a layer sees, and which of them.
fn blocks(
    builder: &mut Builder<'_>,
    x: ValueId,
    compressed: ValueId,
    block: u32,
    attend: &Attend,
) -> Result<CompressedKv, Finding> {
    let len = attend.heads.key_len;
    let key = compress(builder, x, "attn_compressor", len, block, attend)?;
    let chosen = if builder.has("indexer.attn_q_b.weight") {
        Some(choose(builder, x, compressed, block, attend)?)
    } else {
        None
    };
    let state = builder.state(State::KvCache { key_width: len, value_width: len, block });
    Ok(CompressedKv { key, value: key, state, indices: chosen })
}

/// A key for each block, which rotates by the position of its first token. Where the tensors are
/// twice as wide, blocks overlap.
fn compress(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    len: u32,
    block: u32,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    let gates = format!("{name}_gate");
    let width = u32::try_from(builder.extent(&format!("{gates}.weight"), 1)).unwrap_or(0);
    let values = builder.product(x, &format!("{name}_kv"))?;
    let gate = builder.product(x, &gates)?;
    let place = Some(builder.weight(&format!("{name}_ape.weight"))?);
    let overlap = width == len.saturating_mul(2);
    let rows = block.saturating_mul(if overlap { 2 } else { 1 });
    let state = builder.state(State::RowHistory { width: width.saturating_mul(2), len: rows });
    let made = Op::BlockCompress(BlockCompress {
        x: values,
        gate: Some(gate),
        position_bias: place,
        block,
        overlap,
        state,
    });
    let made = builder.op(made);
    let made = builder.norm(made, &format!("{name}_norm"), attend.norm);
    let rotation = of_heads(&attend.rotation, len);
    let rotation = rotation.map(|rotation| RopeParameters { block, ..rotation });
    Ok(turned(builder, made, 1, &rotation))
}

/// The blocks that fit the compressed queries of a layer best.
fn choose(
    builder: &mut Builder<'_>,
    x: ValueId,
    compressed: ValueId,
    block: u32,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    let heads = builder.size(key::ATTENTION_INDEXER_HEAD_COUNT)?;
    let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
    let count = builder.size(key::ATTENTION_INDEXER_TOP_K)?;
    let query = builder.product(compressed, "indexer.attn_q_b")?;
    let query = turned(builder, query, heads, &of_heads(&attend.rotation, len));
    let key = compress(builder, x, "indexer_compressor", len, block, attend)?;
    let weights = Some(builder.product(x, "indexer.proj")?);
    let state = builder.state(State::KvCache { key_width: len, value_width: 0, block });
    let (together, block, local) = (false, 1, 0);
    let choose = TopkIndexer {
        query,
        key,
        weights,
        heads,
        sum_heads: together,
        top_k: count,
        block,
        local_blocks: local,
        state,
    };
    Ok(builder.op(choose))
}

/// Experts, which in the first layers tokens choose by their ids, and one that all share.
fn network(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let [function, shared] = bounded_gates(builder, layer, ActivationFunction::Silu)?;
    let routing = Routing { function, ..decoder.routing };
    let scores = builder.product(x, "ffn_gate_inp")?;
    let mut experts = experts_by(builder, x, scores, layer, routing)?;
    if let Some(table) = builder.find("ffn_gate_tid2eid.weight") {
        experts.expert_ids = Some(builder.op(Embedding { table, index: Index::Token }));
    }
    let routed = builder.op(experts);
    beside_shared(builder, x, routed, shared)
}
