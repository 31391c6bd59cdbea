//! Computation graph of Hunyuan 4: MLA with gate, sinks and a top-k indexer, and hyper-connections
//! (arXiv 2409.19606).

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, AddScalar, BlockSelection, Gating, GluFunction, RopeLayout, ValueId,
};

use crate::blocks::{
    Decoder, attend, concatenated, embedding, ffn_with, finish, layers, mixing_weights, normed,
    share, stream_count, weighted_sum,
};
use crate::deepseek2;
use crate::deepseek2::graph::MlaDims;
use crate::deepseek32::graph::Indexer;
use crate::graph::Builder;
use crate::schema::key;

/// Builds the layers over the residual streams.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder::llama_like(builder, RopeLayout::Interleaved)?;
    let dims = MlaDims::of(builder)?;
    decoder.attention_scale = Some(1.0 / (dims.key as f32).sqrt());
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.normalize = false;
    let streams = ResidualStreams::of(builder)?;
    let embedded = embedding(builder, &decoder)?;
    let mut x = vec![embedded; streams.count as usize];
    let mut selection = None;
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        let (input, weights) = streams.gather(builder, &x, "hc_attn", &decoder)?;
        let input = normed(builder, input, "attn_norm", &decoder);
        let attended = attention(builder, input, layer, &decoder, &mut selection)?;
        streams.spread(builder, &mut x, attended, weights);
        let (input, weights) = streams.gather(builder, &x, "hc_ffn", &decoder)?;
        let input = normed(builder, input, "ffn_norm", &decoder);
        let fed = ffn(builder, input, layer, &decoder)?;
        streams.spread(builder, &mut x, fed, weights);
    }
    builder.set_layer("", None);
    let x = streams.last(builder, &x, &decoder)?;
    finish(builder, x, &decoder)
}

/// Adds MLA. A layer without an indexer reuses the selection of the layer before.
fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
    selection: &mut Option<BlockSelection>,
) -> Result<ValueId, Finding> {
    let mut attend = attend(builder, layer, decoder)?;
    let latent = deepseek2::graph::query_latent(builder, x, &attend)?;
    if builder.has("indexer.attn_q_b.weight") {
        let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
        let rotary_dims = builder.size(key::ROPE_DIMENSION_COUNT)?;
        let (layout, start) = (RopeLayout::Interleaved, len.saturating_sub(rotary_dims));
        let indexer = Indexer { layout, start, epsilon: attend.norm.epsilon };
        *selection = Some(indexer.select(builder, x, latent, &attend)?);
    }
    attend.selection = *selection;
    deepseek2::graph::mla(builder, x, latent, MlaDims::of(builder)?, &mut attend)
}

/// Adds the FFN or MoE; gates of experts are clamped in layers with a limit.
fn ffn(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let mut routing = decoder.routing;
    if let Some(limit) = builder.clamp_limit(key::SWIGLU_CLAMP_EXP, layer)? {
        routing.function = GluFunction::ClampBefore { function: ActivationFunction::Silu, limit };
    }
    ffn_with(builder, x, layer, routing, decoder.function)
}

/// Hyper-connections over the residual streams.
struct ResidualStreams {
    count: u32,
    epsilon: f32,
    magnitude: f32,
}

impl ResidualStreams {
    /// Reads the hyper-parameters.
    fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        Ok(Self {
            count: stream_count(builder)?,
            epsilon: builder.hparams.f32(key::HYPER_CONNECTION_EPSILON)?,
            magnitude: builder.hparams.f32(key::HYPER_CONNECTION_MAGNITUDE)?,
        })
    }

    /// Adds the weights of all streams, computed from their concatenation.
    fn weights(
        builder: &mut Builder<'_>,
        streams: &[ValueId],
        name: &str,
        decoder: &Decoder,
    ) -> Result<ValueId, Finding> {
        let x = concatenated(builder, streams[0], &streams[1..]);
        mixing_weights(builder, x, name, decoder.norm)
    }

    /// Adds the input of attention or FFN, a weighted sum of the streams; returns it with the
    /// weights for its output.
    fn gather(
        &self,
        builder: &mut Builder<'_>,
        streams: &[ValueId],
        name: &str,
        decoder: &Decoder,
    ) -> Result<(ValueId, ValueId), Finding> {
        let weights = Self::weights(builder, streams, name, decoder)?;
        let [input, output] = builder.split(weights, [self.count; 2]);
        let input = builder.op(AddScalar { x: input, scalar: self.epsilon });
        let output = builder.scale(output, self.magnitude);
        let output = builder.op(AddScalar { x: output, scalar: self.epsilon });
        Ok((weighted_sum(builder, streams[0], &streams[1..], input), output))
    }

    /// Adds the output of attention or FFN to all streams, times their weights.
    fn spread(
        &self,
        builder: &mut Builder<'_>,
        streams: &mut [ValueId],
        output: ValueId,
        weights: ValueId,
    ) {
        for (stream, index) in streams.iter_mut().zip(0..) {
            let part = share(builder, output, weights, index);
            *stream = builder.add(*stream, part);
        }
    }

    /// Adds the input of the final norm, a weighted sum of the streams.
    fn last(
        &self,
        builder: &mut Builder<'_>,
        streams: &[ValueId],
        decoder: &Decoder,
    ) -> Result<ValueId, Finding> {
        let weights = Self::weights(builder, streams, "output_hc", decoder)?;
        let weights = builder.op(AddScalar { x: weights, scalar: self.epsilon });
        Ok(weighted_sum(builder, streams[0], &streams[1..], weights))
    }
}
