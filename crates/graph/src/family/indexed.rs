//! DeepSeek 3.2, GLM 5 and dots 3: compressed attention to the tokens that an indexer chooses.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::family::deepseek::{self, Widths};
use crate::layers::{Attend, Decoder, decoder, embedding, finish, layer_of, layers, turned};
use crate::op::{Among, Choose, Gating, NormKind, Op};
use crate::raw::{State, ValueId};
use crate::rotation::{Pairs, Rotation};

/// DeepSeek 3.2: halves of the indexer's heads rotate together, of the others neighbours.
pub(super) fn deepseek32(builder: &mut Builder<'_>) -> Result<(), Finding> {
    indexed(builder, Pairs::Halves)
}

/// GLM 5: some layers look at what one before them has chosen.
pub(super) fn glm_dsa(builder: &mut Builder<'_>) -> Result<(), Finding> {
    indexed(builder, Pairs::Neighbours)
}

fn indexed(builder: &mut Builder<'_>, pairs: Pairs) -> Result<(), Finding> {
    let family = usual(builder)?;
    let mut x = embedding(builder, &family)?;
    let mut among = None;
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        x = layer_of(builder, x, layer, &family, &mut |builder, x, mut attend| {
            let compressed = deepseek::compressed_queries(builder, x, &attend)?;
            if builder.has("indexer.attn_q_b.weight") {
                let indexer = Indexer { pairs, start: 0, epsilon: EPSILON };
                among = Some(indexer.choose(builder, x, compressed, &attend)?);
            }
            attend.among = among;
            deepseek::attend(builder, x, compressed, Widths::of(builder)?, &mut attend)
        })?;
    }
    builder.at("", None);
    finish(builder, x, &family)
}

/// Experts as in DeepSeek 3; scores of attention sharper where YaRN stretches positions.
fn usual(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut family = Decoder::gated(builder, Pairs::Neighbours)?;
    let mut scale = 1.0 / (Widths::of(builder)?.key as f32).sqrt();
    if let Some(rotation) = &mut family.rotation {
        scale *= deepseek::sharpen(builder, rotation)?;
    }
    family.attention_scale = Some(scale);
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    Ok(family)
}

/// dots 3: layers with a window have compressed attention of other widths and no indexer, and what
/// attention gives has a gate for each head.
pub(super) fn dots3(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder { attention: dots3_attention, ..usual(builder)? };
    family.attention_scale = None;
    decoder(builder, &family)
}

fn dots3_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    _layer: u64,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    let is_windowed = attend.mask.is_window();
    let widths = if is_windowed { Widths::of_window(builder)? } else { Widths::of(builder)? };
    attend.scale = 1.0 / (widths.key as f32).sqrt();
    let compressed = deepseek::compressed_queries(builder, x, &attend)?;
    if !is_windowed {
        let indexer = Indexer { pairs: Pairs::Halves, start: 0, epsilon: EPSILON };
        attend.among = Some(indexer.choose(builder, x, compressed, &attend)?);
    }
    deepseek::attend(builder, x, compressed, widths, &mut attend)
}

/// How the heads of an indexer rotate, and its keys are normed.
#[derive(Clone, Copy)]
pub(super) struct Indexer {
    pub pairs: Pairs,
    /// The first number of a head that rotates.
    pub start: u32,
    /// Of the norm of keys.
    pub epsilon: f32,
}

/// Of the norm of an indexer's keys in most models, which no key of the file tells.
const EPSILON: f32 = 1e-6;

impl Indexer {
    /// The tokens that fit the compressed queries of a layer best.
    pub fn choose(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        compressed: ValueId,
        attend: &Attend,
    ) -> Result<Among, Finding> {
        let heads = builder.size("attention.indexer.head_count")?;
        let len = builder.size("attention.indexer.key_length")?;
        let query = builder.product(compressed, "indexer.attn_q_b")?;
        let key = builder.product(x, "indexer.attn_k")?;
        let norm = Norm { kind: NormKind::Variance, epsilon: self.epsilon };
        let key = builder.norm(key, "indexer.k_norm", norm);
        let Self { pairs, start, .. } = self;
        let rotation = attend.rotation.clone();
        let rotation = rotation.map(|rotation| Rotation { pairs, start, ..rotation });
        let [query, key] =
            [(query, heads), (key, 1)].map(|(x, heads)| turned(builder, x, heads, &rotation));
        let weights = Some(builder.product(x, "indexer.proj")?);
        let count = builder.size("attention.indexer.top_k")?;
        let state = builder.state(State::cache(len, 0));
        let (together, block, local) = (false, 1, 0);
        let choose = Choose { query, key, weights, heads, together, count, block, local, state };
        let chosen = builder.op(Op::Choose(choose));
        Ok(Among { chosen, groups: 1, block: 1, tail: false })
    }
}
