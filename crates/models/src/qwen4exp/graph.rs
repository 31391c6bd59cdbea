//! Computation graph of Qwen 3.8 Flash: MoE layers of Qwen3.5 on several residual streams
//! (hyper-connections, arXiv:2409.19606), an indexer that selects blocks of tokens, and n-gram
//! embeddings in one layer.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, BlockCompress, BlockSelection, CausalConv1d, GatedActivation,
    HashHead, Mul, NgramEmbedding, Op, RopeLayout, RopeParameters, SelectOutputs, State, Sum,
    TopkIndexer, ValueId,
};

use crate::blocks::{
    Attend, Decoder, add_outputs, apply_rope, attend, embedding, ffn, layers, mean_of_groups,
    repeated, stream_count,
};
use crate::graph::{Builder, Norm};
use crate::qwen3next::graph::{full_attention, linear_attention};
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder::llama_like(builder, RopeLayout::Neox)?;
    let streams = Streams::of(builder, decoder.norm)?;
    let embedded = embedding(builder, &decoder)?;
    let mut x = repeated(builder, embedded, 1, streams.count);
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        if builder.has("ple_key.weight") {
            x = add_ngrams(builder, x, &streams)?;
        }
        let mixed = streams.mix(builder, x, "hc_attn")?;
        let attend = attend(builder, layer, &decoder)?;
        let output = attention(builder, mixed.input, layer, attend)?;
        x = streams.inject(builder, x, output, mixed, "hc_attn")?;
        let mixed = streams.mix(builder, x, "hc_ffn")?;
        let output = ffn(builder, mixed.input, layer, &decoder)?;
        x = streams.inject(builder, x, output, mixed, "hc_ffn")?;
    }
    builder.set_layer("", None);
    let x = builder.op(SelectOutputs { x });
    let hidden = streams.mix(builder, x, "output_hc")?.input;
    add_outputs(builder, hidden, &decoder)
}

fn attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    mut attend: Attend,
) -> Result<ValueId, Finding> {
    if !builder.has("attn_q.weight") {
        return linear_attention(builder, x, &attend, ActivationFunction::Sigmoid);
    }
    attend.selection = selected_blocks(builder, x, layer, &attend)?;
    full_attention(builder, x, &attend)
}

/// Returns the blocks of tokens that the indexer of the layer selects; `None` without indexer. The key of a
/// block is the mean of the keys of its tokens, normalized, with the RoPE position of its first token.
fn selected_blocks(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    attend: &Attend,
) -> Result<Option<BlockSelection>, Finding> {
    const RATIOS: &str = "attention.compress_ratios";
    if builder.hparams.value(RATIOS).is_none() || !builder.has("indexer.k_proj.weight") {
        return Ok(None);
    }
    let block = builder.size_from_list(RATIOS, layer)?;
    if block == 0 {
        return Ok(None);
    }
    let heads = builder.size(key::ATTENTION_INDEXER_HEAD_COUNT)?;
    let len = builder.size(key::ATTENTION_INDEXER_KEY_LENGTH)?;
    let tokens = builder.size(key::ATTENTION_INDEXER_TOP_K)?;
    let query = builder.matmul(x, "indexer.q_proj")?;
    let query = builder.group_norm(query, "indexer.q_norm", attend.norm, heads);
    let query = apply_rope(builder, query, heads, &attend.rope);
    let key = builder.matmul(x, "indexer.k_proj")?;
    let state = builder.state(State::RowHistory { width: len.saturating_mul(2), len: block });
    let (gate, position_bias, overlap) = (None, None, false);
    let key = builder.op(BlockCompress { x: key, gate, position_bias, block, overlap, state });
    let key = builder.norm(key, "indexer.k_norm", attend.norm);
    let rope = attend.rope.clone().map(|rope| RopeParameters { block, ..rope });
    let key = apply_rope(builder, key, 1, &rope);
    let indexer = TopkIndexer {
        query,
        key,
        weights: None,
        heads,
        sum_heads: true,
        top_k: (tokens / block).max(1),
        block: 1,
        local_blocks: 0,
        state: builder.state(State::KvCache { key_width: len, value_width: 0, block }),
    };
    Ok(Some(BlockSelection { indices: builder.op(indexer), groups: 1, block, include_tail: true }))
}

/// Residual streams, side by side in a row.
struct Streams {
    count: u32,
    /// Width of a stream.
    width: u32,
    /// Norm of each stream.
    norm: Norm,
}

/// Input of attention or FFN, mixed from the streams.
#[derive(Clone, Copy)]
struct Mixed {
    input: ValueId,
    /// Normalized streams.
    normed: ValueId,
}

impl Streams {
    fn of(builder: &Builder<'_>, norm: Norm) -> Result<Self, Finding> {
        Ok(Self {
            count: stream_count(builder)?,
            width: builder.size(key::EMBEDDING_LENGTH)?,
            norm,
        })
    }

    /// Mixes the streams: the mean of the normalized streams, gated by a low-rank projection.
    fn mix(&self, builder: &mut Builder<'_>, x: ValueId, name: &str) -> Result<Mixed, Finding> {
        let normed = builder.group_norm(x, &format!("{name}_norm"), self.norm, self.count);
        let low = builder.matmul(normed, &format!("{name}_down"))?;
        let low = builder.scale(low, 1.0 / self.count as f32);
        let low = builder.op(Activation { x: low, function: ActivationFunction::Silu });
        let gate = builder.matmul(low, &format!("{name}_up"))?;
        let function = ActivationFunction::Sigmoid.into();
        let gated = builder.op(GatedActivation { gate, up: normed, function });
        let input = mean_of_groups(builder, gated, self.count, self.width);
        Ok(Mixed { input, normed })
    }

    /// Adds the output of attention or FFN to all streams, weighted for each stream.
    fn inject(
        &self,
        builder: &mut Builder<'_>,
        x: ValueId,
        output: ValueId,
        mixed: Mixed,
        name: &str,
    ) -> Result<ValueId, Finding> {
        let weights = builder.matmul(mixed.normed, &format!("{name}_inject"))?;
        let weights = builder.scale(weights, 1.0 / self.count as f32);
        let weights = builder.op(Activation { x: weights, function: ActivationFunction::Sigmoid });
        let weights = builder.scale(weights, 2.0);
        let output = self.broadcast(builder, output, weights);
        Ok(builder.add(x, output))
    }

    /// Repeats `x` for each stream, times its weight.
    fn broadcast(&self, builder: &mut Builder<'_>, x: ValueId, weights: ValueId) -> ValueId {
        let all = repeated(builder, x, 1, self.count);
        builder.op(Mul { a: all, b: weights })
    }
}

/// Adds n-gram embeddings to the streams, weighted for each stream, and a causal convolution of them.
fn add_ngrams(
    builder: &mut Builder<'_>,
    x: ValueId,
    streams: &Streams,
) -> Result<ValueId, Finding> {
    let Streams { count, width, norm } = *streams;
    let tokens = builder.size(key::PLE_NGRAM_SIZE)?;
    let embedded = ngram_embedding(builder, tokens)?;
    let key = builder.matmul(embedded, "ple_key")?;
    let key = builder.group_norm(key, "ple_norm_key", norm, count);
    let query = builder.group_norm(x, "ple_norm_query", norm, count);
    let scores = builder.op(Mul { a: key, b: query });
    let scores = builder.op(Sum { x: scores, groups: count });
    let scores = builder.scale(scores, 1.0 / (width as f32).sqrt());
    let scores = builder.op(Activation { x: scores, function: ActivationFunction::SignedSqrt });
    let weights = builder.op(Activation { x: scores, function: ActivationFunction::Sigmoid });
    let value = builder.matmul(embedded, "ple_value")?;
    let weighted = streams.broadcast(builder, value, weights);
    let normed = builder.group_norm(weighted, "ple_norm_conv", norm, count);
    let kernel = builder.size(key::PLE_CONV_KERNEL)?;
    let rows = kernel.saturating_sub(1).saturating_mul(tokens);
    let state = builder.state(State::RowHistory { width: width.saturating_mul(count), len: rows });
    let weight = builder.weight("ple_conv1d.weight")?;
    let convolved =
        Op::CausalConv1d(CausalConv1d { x: normed, weight, bias: None, dilation: tokens, state });
    let convolved = builder.op(convolved);
    let convolved = builder.op(Activation { x: convolved, function: ActivationFunction::Silu });
    let sum = builder.add(weighted, convolved);
    Ok(builder.add(x, sum))
}

/// Embeds the n-grams of up to `tokens` tokens.
fn ngram_embedding(builder: &mut Builder<'_>, tokens: u32) -> Result<ValueId, Finding> {
    let multipliers = builder.u64_array(key::PLE_LAYER_MULTIPLIERS)?;
    let heads = builder.size(key::PLE_HEADS_PER_NGRAM)? as usize;
    let heads = heads.saturating_mul(tokens.saturating_sub(1) as usize);
    let starts = builder.u64_array(key::PLE_HEAD_OFFSETS)?;
    let counts = builder.u64_array(key::PLE_HEAD_VOCAB_SIZES)?;
    let buckets = starts.into_iter().zip(counts).take(heads);
    let buckets: Vec<_> =
        buckets.map(|(start, count)| HashHead { offset: start, size: count }).collect();
    if multipliers.len() < tokens as usize || buckets.len() < heads {
        let message = "the keys of `ple` list too few numbers for the n-gram size and its heads";
        return Err(Finding::error("key-value", message)
            .key("ple.layer_multipliers")
            .help("convert the model again"));
    }
    let table = builder.global_weight("per_layer_token_embd.weight")?;
    let state = builder.state(State::TokenHistory { len: tokens.saturating_sub(1) });
    Ok(builder.op(NgramEmbedding {
        table,
        multipliers: multipliers.into_iter().take(tokens as usize).collect(),
        heads: buckets,
        end_token: builder.size(key::PLE_EOS_TOKEN_ID)?,
        state,
    }))
}
