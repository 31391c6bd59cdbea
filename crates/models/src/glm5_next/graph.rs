//! Graph of `glm5-next`: hyper-connections, Kimi Delta Attention, and MLA to blocks of tokens that
//! an indexer selects.

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, BlockCompress, BlockSelection, Gating, RopeLayout, State, TopkIndexer,
    ValueId,
};

use crate::blocks::{
    DecayBound, Decoder, HyperConnections, Routing, attend, clamped_activations, embedding,
    ffn_with, finish, kimi_delta_attention,
};
use crate::deepseek2;
use crate::deepseek2::graph::MlaDims;
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// No layer has RoPE. The output is the mean of the streams.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        attention_scale: Some(deepseek2::graph::softmax_scale(builder)?),
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    // Recurrent states and causal masks carry the positions.
    (decoder.rope, decoder.window_rope) = (None, None);
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.normalize = false;
    let hyper = HyperConnections::of(builder, decoder.norm)?;
    let embedded = embedding(builder, &decoder)?;
    let mut selection = None;
    let x = hyper.layers(
        builder,
        embedded,
        &decoder,
        &mut |builder, x, layer| mixer(builder, x, layer, &decoder, &mut selection),
        &mut |builder, x, layer| ffn(builder, x, layer, &decoder),
    )?;
    let x = hyper.mean(builder, x)?;
    finish(builder, x, &decoder)
}

/// Kimi Delta Attention, or MLA to the selection of the last indexer up to this layer.
fn mixer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
    selection: &mut Option<BlockSelection>,
) -> Result<ValueId, Finding> {
    let mut attend = attend(builder, layer, decoder)?;
    if !builder.has("attn_kv_a_mqa.weight") {
        let bound = builder.f32_or_default(key::KDA_GATE_LOWER_BOUND)?;
        let bound = bound.map(|least| DecayBound { least, sign: -1.0 });
        return kimi_delta_attention(builder, x, attend.heads.heads, attend.norm, bound);
    }
    let latent = deepseek2::graph::query_latent(builder, x, &attend)?;
    if has_indexer(builder, layer)? {
        *selection = Some(select_blocks(builder, x, latent)?);
    }
    attend.selection = *selection;
    deepseek2::graph::mla(builder, x, latent, MlaDims::of(builder)?, &mut attend)
}

/// Returns whether a layer has an indexer of its own.
fn has_indexer(builder: &Builder<'_>, layer: u64) -> Result<bool, Finding> {
    const INDEXER_TYPES: &str = "attention.indexer.types";
    let is_full = builder.hparams.value(INDEXER_TYPES).is_none()
        || builder.bool_in_layer(INDEXER_TYPES, layer)?;
    Ok(is_full && builder.has("indexer.attn_q_b.weight"))
}

/// Selects blocks by the indexer, whose keys are pooled over `kpool` tokens by gates with learned
/// positions. The constant scale of head weights is left out: it does not change the order.
fn select_blocks(
    builder: &mut Builder<'_>,
    x: ValueId,
    latent: ValueId,
) -> Result<BlockSelection, Finding> {
    let heads = builder.size(key::ATTENTION_INDEXER_HEAD_COUNT)?;
    let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
    let block = builder.size(key::ATTENTION_INDEXER_KPOOL)?.max(1);
    let top_k = builder.size(key::ATTENTION_INDEXER_TOP_K)? / block;
    let include_tail = builder.hparams.bool(key::ATTENTION_INDEXER_KPOOL_SELECT_TAIL)?;
    let query = builder.matmul(latent, "indexer.attn_q_b")?;
    let key = builder.matmul(x, "indexer.attn_k")?;
    let norm = Norm::layer(builder)?;
    let key = builder.norm(key, "indexer.k_norm", norm);
    let gate = builder.matmul(x, "indexer_compressor_gate")?;
    let position_bias = Some(builder.weight("indexer_compressor_ape.weight")?);
    let state = builder.state(State::RowHistory { width: len.saturating_mul(2), len: block });
    let compress =
        BlockCompress { x: key, gate: Some(gate), position_bias, block, overlap: false, state };
    let key = builder.op(compress);
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
    let indices = builder.op(indexer);
    Ok(BlockSelection { indices, groups: 1, block, include_tail })
}

/// FFN or MoE with clamped gates.
fn ffn(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let [function, ffn_function] = clamped_activations(builder, layer, ActivationFunction::Silu)?;
    ffn_with(builder, x, layer, Routing { function, ..decoder.routing }, ffn_function)
}
