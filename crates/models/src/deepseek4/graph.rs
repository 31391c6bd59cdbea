//! Graph of `deepseek4`: hyper-connections, attention to a sliding window and to compressed blocks
//! of tokens, and hash routing.

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, BatchedMatmul, BlockCompress, CompressedKv, Embedding, Index, RopeLayout,
    RopeParameters, State, TopkIndexer, ValueId,
};

use crate::blocks::{
    Attend, Decoder, Heads, HyperConnections, Routing, add_shared_expert, apply_rope, attend,
    attend_to, clamped_activations, embedding, experts_by, finish,
};
use crate::deepseek2;
use crate::graph::Builder;
use crate::schema::key;

/// Builds the layers on hyper-connection streams.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder::llama_like(builder, RopeLayout::Interleaved)?;
    let streams = HyperConnections::of(builder, decoder.norm)?;
    let embedded = embedding(builder, &decoder)?;
    let x = streams.layers(
        builder,
        embedded,
        &decoder,
        &mut |builder, x, layer| attention(builder, x, layer, &decoder),
        &mut |builder, x, layer| ffn(builder, x, layer, &decoder),
    )?;
    let x = streams.last(builder, x)?;
    finish(builder, x, &decoder)
}

/// Attention with one KV head whose keys are the values.
fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let mut attend = attend(builder, layer, decoder)?;
    let Heads { heads, key_len, .. } = attend.heads;
    attend.heads = Heads { heads_kv: 1, value_len: key_len, ..attend.heads };
    let block = builder.size_from_list(key::ATTENTION_COMPRESS_RATIOS, layer)?;
    attend.rope = rope(builder, block, decoder)?;
    let rope = at_head_end(&attend.rope, key_len);
    let latent = deepseek2::graph::query_latent(builder, x, &attend)?;
    let query = builder.matmul(latent, "attn_q_b")?;
    let query = builder.norm_without_weight(query, attend.norm, heads);
    let query = apply_rope(builder, query, heads, &rope);
    let key = builder.matmul(x, "attn_kv")?;
    let key = builder.norm(key, "attn_kv_a_norm", attend.norm);
    let key = apply_rope(builder, key, 1, &rope);
    if block > 0 {
        attend.compressed = Some(compressed_kv(builder, x, latent, block, &attend)?);
    }
    let attended = attend_to(builder, [query, key, key], &attend);
    // Values are keys with RoPE, which inverse RoPE of the result undoes.
    let inverse = rope.map(|rope| RopeParameters { inverse: true, ..rope });
    let attended = apply_rope(builder, attended, heads, &inverse);
    let weight = builder.weight("attn_output_a.weight")?;
    let grouped = builder.op(BatchedMatmul { x: attended, weight });
    builder.matmul(grouped, "attn_output_b")
}

/// Returns RoPE of a layer: layers with compression have RoPE scaling and a base frequency of their
/// own.
fn rope(
    builder: &Builder<'_>,
    block: u32,
    decoder: &Decoder,
) -> Result<Option<RopeParameters>, Finding> {
    let Some(rope) = decoder.rope.clone() else { return Ok(None) };
    if block == 0 {
        return Ok(Some(rope.without_scaling()));
    }
    let base = builder.hparams.f32(key::ATTENTION_COMPRESS_ROPE_FREQ_BASE)?;
    Ok(Some(RopeParameters { freq_base: base, attention_factor: 1.0, ..rope }))
}

/// Returns RoPE of the last dimensions of heads of length `len`.
fn at_head_end(rope: &Option<RopeParameters>, len: u32) -> Option<RopeParameters> {
    let rope = rope.clone()?;
    Some(RopeParameters { start: len.saturating_sub(rope.dimensions), ..rope })
}

/// Returns the compressed keys of a layer, with the selection of its indexer if it has one.
fn compressed_kv(
    builder: &mut Builder<'_>,
    x: ValueId,
    latent: ValueId,
    block: u32,
    attend: &Attend,
) -> Result<CompressedKv, Finding> {
    let len = attend.heads.key_len;
    let key = compress_blocks(builder, x, "attn_compressor", len, block, attend)?;
    let indices = if builder.has("indexer.attn_q_b.weight") {
        Some(select_blocks(builder, x, latent, block, attend)?)
    } else {
        None
    };
    let state = builder.state(State::KvCache { key_width: len, value_width: len, block });
    Ok(CompressedKv { key, value: key, state, indices })
}

/// Compresses blocks of `block` tokens to one key each, which has RoPE by the position of the first
/// token. Blocks overlap if the projections are twice as wide as a key.
fn compress_blocks(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    len: u32,
    block: u32,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    let gates = format!("{name}_gate");
    let width = u32::try_from(builder.extent(&format!("{gates}.weight"), 1)).unwrap_or(0);
    let values = builder.matmul(x, &format!("{name}_kv"))?;
    let gate = builder.matmul(x, &gates)?;
    let position_bias = Some(builder.weight(&format!("{name}_ape.weight"))?);
    let overlap = width == len.saturating_mul(2);
    let rows = block.saturating_mul(if overlap { 2 } else { 1 });
    let state = builder.state(State::RowHistory { width: width.saturating_mul(2), len: rows });
    let compress =
        BlockCompress { x: values, gate: Some(gate), position_bias, block, overlap, state };
    let compressed = builder.op(compress);
    let key = builder.norm(compressed, &format!("{name}_norm"), attend.norm);
    let rope = at_head_end(&attend.rope, len);
    let rope = rope.map(|rope| RopeParameters { block, ..rope });
    Ok(apply_rope(builder, key, 1, &rope))
}

/// Selects the blocks with the highest indexer scores for the query latent of a layer.
fn select_blocks(
    builder: &mut Builder<'_>,
    x: ValueId,
    latent: ValueId,
    block: u32,
    attend: &Attend,
) -> Result<ValueId, Finding> {
    let heads = builder.size(key::ATTENTION_INDEXER_HEAD_COUNT)?;
    let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
    let top_k = builder.size(key::ATTENTION_INDEXER_TOP_K)?;
    let query = builder.matmul(latent, "indexer.attn_q_b")?;
    let query = apply_rope(builder, query, heads, &at_head_end(&attend.rope, len));
    let key = compress_blocks(builder, x, "indexer_compressor", len, block, attend)?;
    let weights = Some(builder.matmul(x, "indexer.proj")?);
    let state = builder.state(State::KvCache { key_width: len, value_width: 0, block });
    let indexer = TopkIndexer {
        query,
        key,
        weights,
        heads,
        sum_heads: false,
        top_k,
        block: 1,
        local_blocks: 0,
        state,
    };
    Ok(builder.op(indexer))
}

/// MoE with a shared expert; hash layers select experts by token id.
fn ffn(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let [function, shared] = clamped_activations(builder, layer, ActivationFunction::Silu)?;
    let routing = Routing { function, ..decoder.routing };
    let scores = builder.matmul(x, "ffn_gate_inp")?;
    let mut experts = experts_by(builder, x, scores, layer, routing)?;
    if let Some(table) = builder.find("ffn_gate_tid2eid.weight") {
        experts.expert_ids = Some(builder.op(Embedding { table, index: Index::Token }));
    }
    let routed = builder.op(experts);
    add_shared_expert(builder, x, routed, shared)
}
