//! What each operation does, one file per kind. The formulas stand at [`gguf_graph::Op`].

mod attention;
mod choose;
mod compress;
mod distance;
mod elementwise;
mod experts;
mod frames;
mod linear_attention;
mod ngrams;
mod norm;
mod numbered;
mod recurrent;
mod rotate;
mod rows;
mod streams;
mod wkv;

use gguf::Error;
use gguf_graph::{
    Activation, Add, AddScalar, AttentionTemperature, BatchedMatmul, Bias, CausalConv1d, Clamp,
    Concat, Conv1d, Embedding, Features, GatedActivation, KvStore, L2Norm, LayerNorm, Lerp, Matmul,
    MatmulId, Mul, MulWeight, NormKind, Op, Pool, RmsNorm, Rope, Scale, SelectOutputs, Sinkhorn,
    Slice, SoftCap, Softmax, StreamMix, Sum, TokenShift,
};
use rayon::prelude::*;

use crate::product;
use crate::run::Run;
use crate::state::Sequence;
use crate::value::Value;

/// Computes an operation into `out`, which has the right shape, and is all zeros unless the operation writes
/// every number.
pub(crate) fn compute(
    run: &Run<'_>,
    op: &Op,
    mut out: Value,
    sequences: &mut [Sequence],
) -> Result<Value, Error> {
    let weights = &run.executor.weights;
    let to = &mut out;
    match op {
        Op::Features(Features { .. }) => rows::features(run, to),
        Op::Embedding(Embedding { table, index }) => {
            rows::embed(run, weights.matrix(*table), index, to)?
        }
        Op::NgramEmbedding(ngrams) => ngrams::ngrams(run, ngrams, sequences, to),
        Op::Matmul(Matmul { x, weight, bias }) => {
            product::multiply(run.how(), weights.matrix(*weight), run.input(*x), to);
            let x = run.value(*x);
            product::add_adapters(run.how(), run.executor.adapters.of(*weight), x, to);
            elementwise::add_row(weights.optional(*bias), to);
        }
        Op::TokenConstant(mark) => numbered::mark(run, mark, to),
        Op::MatmulId(MatmulId { x, ids: number, weight }) => {
            let (x, number) = (run.value(*x), run.value(*number));
            numbered::multiply(run, weights.matrix(*weight), x, number, to);
        }
        Op::BatchedMatmul(BatchedMatmul { x, weight }) => {
            product::multiply_heads(run.how(), weights.matrix(*weight), run.value(*x), to);
        }
        Op::LayerNorm(LayerNorm { x, epsilon, groups, weight, bias }) => {
            let (weight, bias) = (weights.optional(*weight), weights.optional(*bias));
            norm::norm(run.value(*x), NormKind::Layer, *epsilon, *groups, weight, bias, to);
        }
        Op::RmsNorm(RmsNorm { x, epsilon, groups, weight, bias }) => {
            let (weight, bias) = (weights.optional(*weight), weights.optional(*bias));
            norm::norm(run.value(*x), NormKind::Rms, *epsilon, *groups, weight, bias, to);
        }
        Op::L2Norm(L2Norm { x, epsilon, groups, weight, bias }) => {
            let (weight, bias) = (weights.optional(*weight), weights.optional(*bias));
            norm::norm(run.value(*x), NormKind::L2, *epsilon, *groups, weight, bias, to);
        }
        Op::Add(Add { a, b }) => elementwise::pairs(run.value(*a), run.value(*b), to, |a, b| a + b),
        Op::Mul(Mul { a, b }) => elementwise::multiply(run.value(*a), run.value(*b), to),
        Op::Bias(Bias { x, weight }) => {
            elementwise::map(run.value(*x), to, |x| x);
            elementwise::add_row(Some(weights.floats(*weight)), to);
        }
        Op::MulWeight(MulWeight { x, weight }) => {
            elementwise::with_row(run.value(*x), weights.floats(*weight), to);
        }
        Op::Lerp(Lerp { a, b, weight }) => {
            elementwise::mix(run.value(*a), run.value(*b), weights.floats(*weight), to);
        }
        Op::Scale(Scale { x, factor }) => elementwise::map(run.value(*x), to, |x| x * factor),
        Op::AddScalar(AddScalar { x, scalar: number }) => {
            elementwise::map(run.value(*x), to, |x| x + number)
        }
        Op::AttentionTemperature(AttentionTemperature { x, offset, length, scale }) => {
            rows::scale_by_position(run, run.value(*x), *offset, *length, *scale, to);
        }
        Op::Clamp(Clamp { x, bound }) => {
            elementwise::map(run.value(*x), to, |x| x.clamp(-*bound, *bound));
        }
        Op::SoftCap(SoftCap { x, cap }) => {
            elementwise::map(run.value(*x), to, |x| cap * (x / cap).tanh())
        }
        Op::Activation(Activation { x, function }) => {
            elementwise::activate(run.value(*x), *function, to)
        }
        Op::Softmax(Softmax { x, groups }) => {
            elementwise::softmax_parts(run.value(*x), *groups, to)
        }
        Op::Sinkhorn(Sinkhorn { x, iterations, epsilon }) => {
            streams::sinkhorn(run.value(*x), *iterations, *epsilon, to);
        }
        Op::StreamMix(StreamMix { x, matrix: shares, streams: parts }) => {
            streams::combine(run.value(*x), run.value(*shares), *parts, to);
        }
        Op::GatedActivation(GatedActivation { gate, up, function }) => {
            elementwise::gate(run.value(*gate), run.value(*up), *function, to);
        }
        Op::Slice(Slice { x, groups, start, len }) => {
            rows::slice(run.value(*x), *groups, *start, *len, to);
        }
        Op::Concat(Concat { a, b, groups, broadcast: shared }) => {
            rows::join(run.value(*a), run.value(*b), *groups, *shared, to);
        }
        Op::Sum(Sum { x, .. }) => rows::sum(run.value(*x), to),
        Op::Rope(Rope { x, heads, parameters: rotation }) => {
            rotate::rotate(run, run.value(*x), *heads, rotation, to)
        }
        Op::Attention(attention) => attention::attention(run, attention, sequences, to),
        Op::TopkIndexer(choose) => choose::choose(run, choose, sequences, to),
        Op::KvStore(KvStore { key, value, state }) => {
            attention::store(run, run.value(*key), run.value(*value), *state, sequences, to);
        }
        Op::BlockCompress(compress) => compress::compress(run, compress, sequences, to),
        Op::Moe(experts) => experts::experts(run, experts, to),
        Op::CausalConv1d(CausalConv1d { x, weight, bias, dilation, state }) => {
            let kernels = (weights.floats(*weight), weights.optional(*bias));
            recurrent::convolution(run, run.value(*x), kernels, *dilation, *state, sequences, to);
        }
        Op::Conv1d(Conv1d { x, weight, bias, stride }) => {
            let shape = &run.executor.graph.raw().weights[weight.0 as usize].shape;
            let kernel = shape.first().map_or(1, |extent| *extent as usize);
            let (weight, bias) = (weights.floats(*weight), weights.optional(*bias));
            frames::convolution(run.value(*x), weight, bias, kernel, *stride as usize, to);
        }
        Op::TokenShift(TokenShift { x, state }) => {
            recurrent::shift(run, run.value(*x), *state, sequences, to)
        }
        Op::SelectiveScan(scan) => recurrent::scan(run, scan, sequences, to),
        Op::Wkv(wkv) => wkv::wkv(run, wkv, sequences, to),
        Op::LinearAttention(attention) => {
            linear_attention::linear_attention(run, attention, sequences, to);
        }
        Op::SelectOutputs(SelectOutputs { x }) => rows::select(run, run.value(*x), to),
        Op::Pool(Pool { x, kind }) => rows::pool(run, run.value(*x), *kind, to),
    }
    Ok(out)
}

/// Numbers below which other threads are not worth waking.
const WORTHWHILE: usize = 1 << 14;

/// Calls `work` with the number and the numbers of each row, on all threads if there is enough to do.
fn each_row(out: &mut Value, work: impl Fn(usize, &mut [f32]) + Sync) {
    let width = out.width.max(1);
    if out.data.len() < WORTHWHILE || out.rows == 1 {
        out.data.chunks_exact_mut(width).enumerate().for_each(|(row, out)| work(row, out));
    } else {
        let rows = out.data.par_chunks_exact_mut(width).with_min_len(4).enumerate();
        rows.for_each(|(row, out)| work(row, out));
    }
}
