//! Manifold-constrained hyper-connections (arXiv 2512.24880): several residual streams, mixed by matrices
//! that Sinkhorn normalization makes doubly stochastic.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, AddScalar, Bias, Concat, Embedding, Index, Mul, Sinkhorn,
    StreamMix, ValueId,
};

use crate::blocks::{
    Decoder, layers, mean_of_groups, mixing_weights, normed, repeated, stream_count,
};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Attention or FFN of a layer: input to output.
type Part<'p> = &'p mut dyn FnMut(&mut Builder<'_>, ValueId, u64) -> Result<ValueId, Finding>;

/// Parameters of hyper-connections. The streams are concatenated in one value.
pub(crate) struct HyperConnections {
    count: u32,
    iterations: u32,
    epsilon: f32,
    norm: Norm,
}

impl HyperConnections {
    /// Reads the hyper-parameters.
    pub fn of(builder: &Builder<'_>, norm: Norm) -> Result<Self, Finding> {
        Ok(Self {
            count: stream_count(builder)?,
            iterations: builder.size(key::HYPER_CONNECTION_SINKHORN_ITERATIONS)?.max(1),
            epsilon: builder.hparams.f32(key::HYPER_CONNECTION_EPSILON)?,
            norm,
        })
    }

    /// Adds all layers and returns the streams after the last. All streams start as the embedding; in each
    /// layer `attention`, then `network`, reads a mix of the streams and writes to all of them.
    pub fn layers<'p>(
        &self,
        builder: &mut Builder<'_>,
        embedded: ValueId,
        decoder: &Decoder,
        attention: Part<'p>,
        ffn: Part<'p>,
    ) -> Result<ValueId, Finding> {
        let mut x = repeated(builder, embedded, 1, self.count);
        for layer in 0..layers(builder)? {
            builder.set_layer("blk.", Some(layer));
            for (name, part) in [("attn", &mut *attention), ("ffn", &mut *ffn)] {
                let (input, shares) = self.gather(builder, x, &format!("hc_{name}"))?;
                let input = normed(builder, input, &format!("{name}_norm"), decoder);
                let made = part(builder, input, layer)?;
                x = self.spread(builder, x, made, shares);
            }
        }
        builder.set_layer("", None);
        Ok(x)
    }

    /// Adds the input of a block, and the mixing weights of the streams and of the block's output after it, from
    /// the tensors `name_fn`, `name_scale` and `name_base`: weights before the block, after it, and between the
    /// streams, each with a scale of its own.
    fn gather(
        &self,
        builder: &mut Builder<'_>,
        streams: ValueId,
        name: &str,
    ) -> Result<(ValueId, ValueId), Finding> {
        let (one, two) = (self.count, 2 * self.count);
        let every = one * one;
        let x = builder.norm_without_weight(streams, self.norm, 1);
        let x = builder.matmul(x, &format!("{name}_fn"))?;
        let table = builder.weight(&format!("{name}_scale.weight"))?;
        let factors = builder.op(Embedding { table, index: Index::Zero });
        let parts = builder.split(x, [two, every]);
        let factors = builder.split(factors, [2, 1]);
        let [a, b] = [0, 1].map(|i| builder.op(Mul { a: parts[i], b: factors[i] }));
        let x = builder.op(Concat { a, b, groups: 1, broadcast: false });
        let weight = builder.weight(&format!("{name}_base.weight"))?;
        let x = builder.op(Bias { x, weight });
        let [read, made, kept] = builder.split(x, [one, one, every]);
        let read = builder.op(Activation { x: read, function: ActivationFunction::Sigmoid });
        let read = self.sum(builder, streams, read);
        let made = builder.op(Activation { x: made, function: ActivationFunction::Sigmoid });
        let made = builder.scale(made, 2.0);
        let Self { iterations, epsilon, .. } = *self;
        let kept = builder.op(Sinkhorn { x: kept, iterations, epsilon });
        let shares = builder.op(Concat { a: kept, b: made, groups: 1, broadcast: false });
        Ok((read, shares))
    }

    /// Adds the streams after a block, from its output and the mixing weights.
    fn spread(
        &self,
        builder: &mut Builder<'_>,
        streams: ValueId,
        made: ValueId,
        shares: ValueId,
    ) -> ValueId {
        let x = builder.op(Concat { a: streams, b: made, groups: 1, broadcast: false });
        builder.op(StreamMix { x, matrix: shares, streams: self.count + 1 })
    }

    /// Adds the mix of all streams by the output's tensors.
    pub fn last(&self, builder: &mut Builder<'_>, streams: ValueId) -> Result<ValueId, Finding> {
        let shares = mixing_weights(builder, streams, "output_hc", self.norm)?;
        Ok(self.sum(builder, streams, shares))
    }

    /// Adds the mean of all streams.
    pub fn mean(&self, builder: &mut Builder<'_>, streams: ValueId) -> Result<ValueId, Finding> {
        let width = builder.size(key::EMBEDDING_LENGTH)?;
        Ok(mean_of_groups(builder, streams, self.count, width))
    }

    /// Adds the weighted sum of all streams, with epsilon added to each weight.
    fn sum(&self, builder: &mut Builder<'_>, streams: ValueId, shares: ValueId) -> ValueId {
        let shares = builder.op(AddScalar { x: shares, scalar: self.epsilon });
        builder.op(StreamMix { x: streams, matrix: shares, streams: self.count })
    }
}
