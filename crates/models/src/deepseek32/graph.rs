//! Graph of `deepseek32` and `glm-dsa`: MLA to the top-k keys of an indexer (DeepSeek sparse
//! attention).

use gguf::Finding;
use gguf_graph::{
    BlockSelection, Gating, NormKind, RopeLayout, RopeParameters, State, TopkIndexer, ValueId,
};

use crate::blocks::{Attend, Decoder, apply_rope, embedding, finish, layer_of, layers};
use crate::deepseek2;
use crate::deepseek2::graph::MlaDims;
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// The indexer has RoPE in NeoX layout, MLA in interleaved layout.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    decoder_with_indexer(builder, RopeLayout::Neox)
}

/// Builds the decoder with an indexer whose RoPE has this layout. Layers without an indexer reuse
/// the selection of the layer before.
pub(crate) fn decoder_with_indexer(
    builder: &mut Builder<'_>,
    layout: RopeLayout,
) -> Result<(), Finding> {
    let decoder = deepseek32_decoder(builder)?;
    let mut x = embedding(builder, &decoder)?;
    let mut selection = None;
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        x = layer_of(builder, x, layer, &decoder, &mut |builder, x, mut attend| {
            let latent = deepseek2::graph::query_latent(builder, x, &attend)?;
            if builder.has("indexer.attn_q_b.weight") {
                let indexer = Indexer { layout, start: 0, epsilon: KEY_NORM_EPSILON };
                selection = Some(indexer.select(builder, x, latent, &attend)?);
            }
            attend.selection = selection;
            deepseek2::graph::mla(builder, x, latent, MlaDims::of(builder)?, &mut attend)
        })?;
    }
    builder.set_layer("", None);
    finish(builder, x, &decoder)
}

/// Returns the decoder of DeepSeek V3.2: sigmoid router without normalization by default, softmax
/// scale multiplied by YaRN's `mscale`.
pub(crate) fn deepseek32_decoder(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut decoder = Decoder::llama_like(builder, RopeLayout::Interleaved)?;
    let mut scale = 1.0 / (MlaDims::of(builder)?.key as f32).sqrt();
    if let Some(rope) = &mut decoder.rope {
        scale *= deepseek2::graph::yarn_mscale(builder, rope)?;
    }
    decoder.attention_scale = Some(scale);
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.normalize = false;
    Ok(decoder)
}

/// RoPE and key norm of an indexer.
#[derive(Clone, Copy)]
pub(crate) struct Indexer {
    /// Layout of RoPE.
    pub layout: RopeLayout,
    /// First dimension of a head with RoPE.
    pub start: u32,
    /// Epsilon of the layer norm of keys.
    pub epsilon: f32,
}

/// Epsilon of the layer norm of indexer keys in most models, for which files have no key.
pub(crate) const KEY_NORM_EPSILON: f32 = 1e-6;

impl Indexer {
    /// Selects the keys with the highest indexer scores for the query latent of a layer.
    pub fn select(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        latent: ValueId,
        attend: &Attend,
    ) -> Result<BlockSelection, Finding> {
        let heads = builder.size(key::ATTENTION_INDEXER_HEAD_COUNT)?;
        let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
        let query = builder.matmul(latent, "indexer.attn_q_b")?;
        let key = builder.matmul(x, "indexer.attn_k")?;
        let norm = Norm { kind: NormKind::Layer, epsilon: self.epsilon };
        let key = builder.norm(key, "indexer.k_norm", norm);
        let Self { layout, start, .. } = self;
        let rope = attend.rope.clone();
        let rope = rope.map(|rope| RopeParameters { layout, start, ..rope });
        let [query, key] =
            [(query, heads), (key, 1)].map(|(x, heads)| apply_rope(builder, x, heads, &rope));
        let weights = Some(builder.matmul(x, "indexer.proj")?);
        let top_k = builder.size(key::ATTENTION_INDEXER_TOP_K)?;
        let state = builder.state(State::kv_cache(len, 0));
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
        Ok(BlockSelection { indices, groups: 1, block: 1, include_tail: false })
    }
}
