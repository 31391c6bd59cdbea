//! MiniMax M3: in layers with experts, each head of keys is looked at in the blocks of tokens that one
//! head of an indexer chooses for it.

use gguf::Finding;
use gguf_graph::{BlockSelection, Gating, GluFunction, RopeLayout, State, TopkIndexer, ValueId};

use crate::blocks::{Attend, Decoder, attention, decoder, network_by, turned};
use crate::graph::Builder;
use crate::schema::key;

/// What is in the middle of all networks.
const FUNCTION: GluFunction = GluFunction::SwigluOai { alpha: 1.702, limit: 7.0 };

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        attention: |builder, x, _, mut attend| {
            if builder.has("indexer.q_proj.weight") {
                attend.among = Some(choose(builder, x, &attend)?);
            }
            attention(builder, x, &attend)
        },
        network: |builder, x, layer, decoder| {
            network_by(builder, x, layer, decoder.routing, FUNCTION)
        },
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    family.routing.gating = Gating::Sigmoid;
    family.routing.function = FUNCTION;
    decoder(builder, &family)
}

fn choose(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<BlockSelection, Finding> {
    let heads = builder.size(key::ATTENTION_INDEXER_HEAD_COUNT)?;
    let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
    let block = builder.size(key::ATTENTION_INDEXER_BLOCK_SIZE)?;
    let parts = [("q", heads), ("k", 1)].map(|(part, heads)| {
        let made = builder.product(x, &format!("indexer.{part}_proj"))?;
        let x = builder.norm_parts(made, &format!("indexer.{part}_norm"), attend.norm, heads);
        Ok(turned(builder, x, heads, &attend.rotation))
    });
    let [query, key]: [Result<ValueId, Finding>; 2] = parts;
    let (query, key) = (query?, key?);
    let count = builder.size(key::ATTENTION_INDEXER_TOP_K)?;
    let local = builder.size(key::ATTENTION_INDEXER_LOCAL_BLOCKS)?;
    let state = builder.state(State::kv_cache(len, 0));
    let weights = None;
    let together = false;
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
    let chosen = builder.op(choose);
    Ok(BlockSelection { indices: chosen, groups: heads, block, include_tail: false })
}
