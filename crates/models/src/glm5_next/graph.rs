//! GLM 5.3: delta attention in most layers, in the others compressed attention to blocks of tokens
//! that an indexer chooses, and several streams of the residual.

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, BlockCompress, BlockSelection, Gating, RopeLayout, State, TopkIndexer,
    ValueId,
};

use crate::blocks::{
    Bound, Decoder, HyperConnections, Routing, attend, bounded_gates, delta_attention, embedding,
    finish, network_by,
};
use crate::deepseek2;
use crate::deepseek2::graph::Widths;
use crate::graph::{Builder, Norm};
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        attention_scale: Some(deepseek2::graph::scale(builder)?),
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    // States and the masks of attention know the order.
    (family.rotation, family.window_rotation) = (None, None);
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    let hyper = HyperConnections::of(builder, family.norm)?;
    let embedded = embedding(builder, &family)?;
    let mut among = None;
    let x = hyper.layers(
        builder,
        embedded,
        &family,
        &mut |builder, x, layer| mixer(builder, x, layer, &family, &mut among),
        &mut |builder, x, layer| network(builder, x, layer, &family),
    )?;
    let x = hyper.mean(builder, x)?;
    finish(builder, x, &family)
}

/// Delta attention, or attention to what the last indexer up to this layer has chosen.
fn mixer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
    among: &mut Option<BlockSelection>,
) -> Result<ValueId, Finding> {
    let mut attend = attend(builder, layer, decoder)?;
    if !builder.has("attn_kv_a_mqa.weight") {
        let bound = builder.known(key::KDA_GATE_LOWER_BOUND)?;
        let bound = bound.map(|least| Bound { least, sign: -1.0 });
        return delta_attention(builder, x, attend.heads.heads, attend.norm, bound);
    }
    let compressed = deepseek2::graph::compressed_queries(builder, x, &attend)?;
    if has_indexer(builder, layer)? {
        *among = Some(choose(builder, x, compressed)?);
    }
    attend.among = *among;
    deepseek2::graph::attend(builder, x, compressed, Widths::of(builder)?, &mut attend)
}

/// Whether a layer chooses for itself.
fn has_indexer(builder: &Builder<'_>, layer: u64) -> Result<bool, Finding> {
    const KINDS: &str = "attention.indexer.types";
    let chooses = builder.hyper.stated(KINDS).is_none() || builder.flag_in(KINDS, layer)?;
    Ok(chooses && builder.has("indexer.attn_q_b.weight"))
}

/// The blocks of tokens whose keys together fit the compressed queries of a layer best. Queries have no rotation,
/// and what weights of heads are scaled by makes no block better than another.
fn choose(
    builder: &mut Builder<'_>,
    x: ValueId,
    compressed: ValueId,
) -> Result<BlockSelection, Finding> {
    let heads = builder.size(key::ATTENTION_INDEXER_HEAD_COUNT)?;
    let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
    let block = builder.size(key::ATTENTION_INDEXER_KPOOL)?.max(1);
    let count = builder.size(key::ATTENTION_INDEXER_TOP_K)? / block;
    let tail = builder.hyper.bool(key::ATTENTION_INDEXER_KPOOL_SELECT_TAIL)?;
    let query = builder.product(compressed, "indexer.attn_q_b")?;
    let key = builder.product(x, "indexer.attn_k")?;
    let norm = Norm::layer(builder)?;
    let key = builder.norm(key, "indexer.k_norm", norm);
    let gate = builder.product(x, "indexer_compressor_gate")?;
    let place = Some(builder.weight("indexer_compressor_ape.weight")?);
    let state = builder.state(State::RowHistory { width: len.saturating_mul(2), len: block });
    let compress = BlockCompress {
        x: key,
        gate: Some(gate),
        position_bias: place,
        block,
        overlap: false,
        state,
    };
    let key = builder.op(compress);
    let weights = Some(builder.product(x, "indexer.proj")?);
    let state = builder.state(State::KvCache { key_width: len, value_width: 0, block });
    let choose = TopkIndexer {
        query,
        key,
        weights,
        heads,
        sum_heads: false,
        top_k: count,
        block: 1,
        local_blocks: 0,
        state,
    };
    let chosen = builder.op(choose);
    Ok(BlockSelection { indices: chosen, groups: 1, block, include_tail: tail })
}

/// Gates are bounded, those of experts and those of other networks; by the same where a model
/// states one bound.
fn network(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let [function, others] = bounded_gates(builder, layer, ActivationFunction::Silu)?;
    network_by(builder, x, layer, Routing { function, ..decoder.routing }, others)
}
