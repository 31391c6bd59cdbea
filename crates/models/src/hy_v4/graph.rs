//! Hunyuan 4: compressed attention to the tokens that an indexer chooses, with gates and sinks, and
//! several streams of the residual (hyper-connections, arXiv 2409.19606).

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, AddScalar, BlockSelection, Gating, GluFunction, RopeLayout, ValueId,
};

use crate::blocks::{
    Decoder, attend, embedding, finish, joined, layers, network_by, normed, share, shares_of,
    stream_count, sum_of_shares,
};
use crate::deepseek2;
use crate::deepseek2::graph::Widths;
use crate::deepseek32::graph::Indexer;
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder::gated(builder, RopeLayout::Interleaved)?;
    let widths = Widths::of(builder)?;
    family.attention_scale = Some(1.0 / (widths.key as f32).sqrt());
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    let streams = Streams::of(builder)?;
    let embedded = embedding(builder, &family)?;
    let mut x = vec![embedded; streams.count as usize];
    let mut among = None;
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        let (input, shares) = streams.gather(builder, &x, "hc_attn", &family)?;
        let input = normed(builder, input, "attn_norm", &family);
        let attended = attention(builder, input, layer, &family, &mut among)?;
        streams.spread(builder, &mut x, attended, shares);
        let (input, shares) = streams.gather(builder, &x, "hc_ffn", &family)?;
        let input = normed(builder, input, "ffn_norm", &family);
        let fed = network(builder, input, layer, &family)?;
        streams.spread(builder, &mut x, fed, shares);
    }
    builder.at("", None);
    let x = streams.last(builder, &x, &family)?;
    finish(builder, x, &family)
}

fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
    among: &mut Option<BlockSelection>,
) -> Result<ValueId, Finding> {
    let mut attend = attend(builder, layer, decoder)?;
    let compressed = deepseek2::graph::compressed_queries(builder, x, &attend)?;
    if builder.has("indexer.attn_q_b.weight") {
        let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
        let rotated = builder.size(key::ROPE_DIMENSION_COUNT)?;
        let (pairs, start) = (RopeLayout::Interleaved, len.saturating_sub(rotated));
        let indexer = Indexer { pairs, start, epsilon: attend.norm.epsilon };
        *among = Some(indexer.choose(builder, x, compressed, &attend)?);
    }
    attend.among = *among;
    deepseek2::graph::attend(builder, x, compressed, Widths::of(builder)?, &mut attend)
}

/// Gates of experts are bounded in some layers.
fn network(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let mut routing = decoder.routing;
    if let Some(limit) = builder.limit(key::SWIGLU_CLAMP_EXP, layer)? {
        routing.function = GluFunction::ClampBefore { function: ActivationFunction::Silu, limit };
    }
    network_by(builder, x, layer, routing, decoder.function)
}

/// The streams of the residual.
struct Streams {
    count: u32,
    epsilon: f32,
    magnitude: f32,
}

impl Streams {
    fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        Ok(Self {
            count: stream_count(builder)?,
            epsilon: builder.hyper.f32(key::HYPER_CONNECTION_EPSILON)?,
            magnitude: builder.hyper.f32(key::HYPER_CONNECTION_MAGNITUDE)?,
        })
    }

    /// A number for each stream, or two, which all streams together say.
    fn shares(
        builder: &mut Builder<'_>,
        streams: &[ValueId],
        name: &str,
        decoder: &Decoder,
    ) -> Result<ValueId, Finding> {
        let x = joined(builder, streams[0], &streams[1..]);
        shares_of(builder, x, name, decoder.norm)
    }

    /// What a part of a layer reads, and the shares that the streams have in what it makes.
    fn gather(
        &self,
        builder: &mut Builder<'_>,
        streams: &[ValueId],
        name: &str,
        decoder: &Decoder,
    ) -> Result<(ValueId, ValueId), Finding> {
        let shares = Self::shares(builder, streams, name, decoder)?;
        let [before, behind] = builder.split(shares, [self.count; 2]);
        let before = builder.op(AddScalar { x: before, scalar: self.epsilon });
        let behind = builder.scale(behind, self.magnitude);
        let behind = builder.op(AddScalar { x: behind, scalar: self.epsilon });
        Ok((sum_of_shares(builder, streams[0], &streams[1..], before), behind))
    }

    /// Adds what a part of a layer makes to all streams.
    fn spread(
        &self,
        builder: &mut Builder<'_>,
        streams: &mut [ValueId],
        made: ValueId,
        shares: ValueId,
    ) {
        for (stream, number) in streams.iter_mut().zip(0..) {
            let part = share(builder, made, shares, number);
            *stream = builder.add(*stream, part);
        }
    }

    /// What goes into the last norm.
    fn last(
        &self,
        builder: &mut Builder<'_>,
        streams: &[ValueId],
        decoder: &Decoder,
    ) -> Result<ValueId, Finding> {
        let shares = Self::shares(builder, streams, "output_hc", decoder)?;
        let shares = builder.op(AddScalar { x: shares, scalar: self.epsilon });
        Ok(sum_of_shares(builder, streams[0], &streams[1..], shares))
    }
}
