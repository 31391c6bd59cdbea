//! DeepSeek 3.2, GLM 5 and dots 3: compressed attention to the tokens that an indexer chooses.

use gguf::Finding;
use gguf_graph::{
    BlockSelection, Gating, NormKind, RopeLayout, RopeParameters, State, TopkIndexer, ValueId,
};

use crate::blocks::{Attend, Decoder, embedding, finish, layer_of, layers, turned};
use crate::deepseek2;
use crate::deepseek2::graph::Widths;
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// DeepSeek 3.2: halves of the indexer's heads rotate together, of the others neighbours.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    indexed(builder, RopeLayout::Neox)
}

pub(crate) fn indexed(builder: &mut Builder<'_>, pairs: RopeLayout) -> Result<(), Finding> {
    let family = usual(builder)?;
    let mut x = embedding(builder, &family)?;
    let mut among = None;
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        x = layer_of(builder, x, layer, &family, &mut |builder, x, mut attend| {
            let compressed = deepseek2::graph::compressed_queries(builder, x, &attend)?;
            if builder.has("indexer.attn_q_b.weight") {
                let indexer = Indexer { pairs, start: 0, epsilon: EPSILON };
                among = Some(indexer.choose(builder, x, compressed, &attend)?);
            }
            attend.among = among;
            deepseek2::graph::attend(builder, x, compressed, Widths::of(builder)?, &mut attend)
        })?;
    }
    builder.at("", None);
    finish(builder, x, &family)
}

/// Experts as in DeepSeek 3; scores of attention sharper where YaRN stretches positions.
pub(crate) fn usual(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut family = Decoder::gated(builder, RopeLayout::Interleaved)?;
    let mut scale = 1.0 / (Widths::of(builder)?.key as f32).sqrt();
    if let Some(rotation) = &mut family.rotation {
        scale *= deepseek2::graph::sharpen(builder, rotation)?;
    }
    family.attention_scale = Some(scale);
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    Ok(family)
}

/// How the heads of an indexer rotate, and its keys are normed.
#[derive(Clone, Copy)]
pub(crate) struct Indexer {
    pub pairs: RopeLayout,
    /// The first number of a head that rotates.
    pub start: u32,
    /// Of the norm of keys.
    pub epsilon: f32,
}

/// Of the norm of an indexer's keys in most models, which no key of the file tells.
pub(crate) const EPSILON: f32 = 1e-6;

impl Indexer {
    /// The tokens that fit the compressed queries of a layer best.
    pub fn choose(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        compressed: ValueId,
        attend: &Attend,
    ) -> Result<BlockSelection, Finding> {
        let heads = builder.size(key::ATTENTION_INDEXER_HEAD_COUNT)?;
        let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
        let query = builder.product(compressed, "indexer.attn_q_b")?;
        let key = builder.product(x, "indexer.attn_k")?;
        let norm = Norm { kind: NormKind::Layer, epsilon: self.epsilon };
        let key = builder.norm(key, "indexer.k_norm", norm);
        let Self { pairs, start, .. } = self;
        let rotation = attend.rotation.clone();
        let rotation = rotation.map(|rotation| RopeParameters { layout: pairs, start, ..rotation });
        let [query, key] =
            [(query, heads), (key, 1)].map(|(x, heads)| turned(builder, x, heads, &rotation));
        let weights = Some(builder.product(x, "indexer.proj")?);
        let count = builder.size(key::ATTENTION_INDEXER_TOP_K)?;
        let state = builder.state(State::kv_cache(len, 0));
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
        let chosen = builder.op(choose);
        Ok(BlockSelection { indices: chosen, groups: 1, block: 1, include_tail: false })
    }
}
