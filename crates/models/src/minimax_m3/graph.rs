//! Computation graph of MiniMax-M3: block-sparse attention with an indexer in MoE layers.

use gguf::Finding;
use gguf_graph::{BlockSelection, Gating, GluFunction, RopeLayout, State, TopkIndexer, ValueId};

use crate::blocks::{self, Attend, Decoder, apply_rope, attention, ffn_with};
use crate::graph::Builder;
use crate::schema::key;

/// Gate function of FFN, shared experts and routed experts.
const GATE_FUNCTION: GluFunction = GluFunction::SwigluOai { alpha: 1.702, limit: 7.0 };

/// Builds a MoE decoder; layers with an indexer attend to the blocks that it selects.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        attention: |builder, x, _, mut attend| {
            if builder.has("indexer.q_proj.weight") {
                attend.selection = Some(select_blocks(builder, x, &attend)?);
            }
            attention(builder, x, &attend)
        },
        ffn: |builder, x, layer, decoder| {
            ffn_with(builder, x, layer, decoder.routing, GATE_FUNCTION)
        },
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.function = GATE_FUNCTION;
    blocks::decoder(builder, &decoder)
}

/// Adds the indexer: one query head per KV head selects the top-k blocks, beside the most recent
/// ones.
fn select_blocks(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<BlockSelection, Finding> {
    let heads = builder.size(key::ATTENTION_INDEXER_HEAD_COUNT)?;
    let key_length = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
    let block = builder.size(key::ATTENTION_INDEXER_BLOCK_SIZE)?;
    let parts = [("q", heads), ("k", 1)].map(|(part, heads)| {
        let projected = builder.matmul(x, &format!("indexer.{part}_proj"))?;
        let x = builder.group_norm(projected, &format!("indexer.{part}_norm"), attend.norm, heads);
        Ok(apply_rope(builder, x, heads, &attend.rope))
    });
    let [query, key]: [Result<ValueId, Finding>; 2] = parts;
    let (query, key) = (query?, key?);
    let top_k = builder.size(key::ATTENTION_INDEXER_TOP_K)?;
    let local_blocks = builder.size(key::ATTENTION_INDEXER_LOCAL_BLOCKS)?;
    let state = builder.state(State::kv_cache(key_length, 0));
    let indexer = TopkIndexer {
        query,
        key,
        weights: None,
        heads,
        sum_heads: false,
        top_k,
        block,
        local_blocks,
        state,
    };
    let indices = builder.op(indexer);
    Ok(BlockSelection { indices, groups: heads, block, include_tail: false })
}
