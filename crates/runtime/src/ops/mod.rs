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
use gguf_graph::{NumberedProduct, Op};
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
        Op::Features { .. } => rows::features(run, to),
        Op::Embed { table, index } => rows::embed(run, weights.matrix(*table), index, to)?,
        Op::Ngrams(ngrams) => ngrams::ngrams(run, ngrams, sequences, to),
        Op::Product { x, weight, bias } => {
            product::multiply(run.how(), weights.matrix(*weight), run.input(*x), to);
            let x = run.value(*x);
            product::add_adapters(run.how(), run.executor.adapters.of(*weight), x, to);
            elementwise::add_row(weights.optional(*bias), to);
        }
        Op::Mark(mark) => numbered::mark(run, mark, to),
        Op::NumberedProduct(NumberedProduct { x, number, weight }) => {
            let (x, number) = (run.value(*x), run.value(*number));
            numbered::multiply(run, weights.matrix(*weight), x, number, to);
        }
        Op::HeadProduct { x, weight } => {
            product::multiply_heads(run.how(), weights.matrix(*weight), run.value(*x), to);
        }
        Op::Norm { x, kind, epsilon, groups, weight, bias } => {
            let (weight, bias) = (weights.optional(*weight), weights.optional(*bias));
            norm::norm(run.value(*x), *kind, *epsilon, *groups, weight, bias, to);
        }
        Op::Add { a, b } => elementwise::pairs(run.value(*a), run.value(*b), to, |a, b| a + b),
        Op::Multiply { a, b } => elementwise::multiply(run.value(*a), run.value(*b), to),
        Op::AddWeight { x, weight } => {
            elementwise::map(run.value(*x), to, |x| x);
            elementwise::add_row(Some(weights.floats(*weight)), to);
        }
        Op::MultiplyWeight { x, weight } => {
            elementwise::with_row(run.value(*x), weights.floats(*weight), to);
        }
        Op::Mix { a, b, weight } => {
            elementwise::mix(run.value(*a), run.value(*b), weights.floats(*weight), to);
        }
        Op::Scale { x, factor } => elementwise::map(run.value(*x), to, |x| x * factor),
        Op::AddNumber { x, number } => elementwise::map(run.value(*x), to, |x| x + number),
        Op::ScaleByPosition { x, offset, length, scale } => {
            rows::scale_by_position(run, run.value(*x), *offset, *length, *scale, to);
        }
        Op::Clamp { x, bound } => {
            elementwise::map(run.value(*x), to, |x| x.clamp(-*bound, *bound));
        }
        Op::SoftCap { x, cap } => elementwise::map(run.value(*x), to, |x| cap * (x / cap).tanh()),
        Op::Activate { x, function } => elementwise::activate(run.value(*x), *function, to),
        Op::Softmax { x, groups } => elementwise::softmax_parts(run.value(*x), *groups, to),
        Op::Sinkhorn { x, iterations, epsilon } => {
            streams::sinkhorn(run.value(*x), *iterations, *epsilon, to);
        }
        Op::Combine { x, shares, parts } => {
            streams::combine(run.value(*x), run.value(*shares), *parts, to);
        }
        Op::Gate { gate, up, function } => {
            elementwise::gate(run.value(*gate), run.value(*up), *function, to);
        }
        Op::Slice { x, groups, start, len } => {
            rows::slice(run.value(*x), *groups, *start, *len, to);
        }
        Op::Join { a, b, groups, shared } => {
            rows::join(run.value(*a), run.value(*b), *groups, *shared, to);
        }
        Op::Sum { x, .. } => rows::sum(run.value(*x), to),
        Op::Rotate { x, heads, rotation } => {
            rotate::rotate(run, run.value(*x), *heads, rotation, to)
        }
        Op::Attention(attention) => attention::attention(run, attention, sequences, to),
        Op::Choose(choose) => choose::choose(run, choose, sequences, to),
        Op::Store { key, value, state } => {
            attention::store(run, run.value(*key), run.value(*value), *state, sequences, to);
        }
        Op::Compress(compress) => compress::compress(run, compress, sequences, to),
        Op::Experts(experts) => experts::experts(run, experts, to),
        Op::CausalConvolution { x, weight, bias, dilation, state } => {
            let kernels = (weights.floats(*weight), weights.optional(*bias));
            recurrent::convolution(run, run.value(*x), kernels, *dilation, *state, sequences, to);
        }
        Op::Convolution { x, weight, bias, stride } => {
            let shape = &run.executor.graph.raw().weights[weight.0 as usize].shape;
            let kernel = shape.first().map_or(1, |extent| *extent as usize);
            let (weight, bias) = (weights.floats(*weight), weights.optional(*bias));
            frames::convolution(run.value(*x), weight, bias, kernel, *stride as usize, to);
        }
        Op::Shift { x, state } => recurrent::shift(run, run.value(*x), *state, sequences, to),
        Op::Scan(scan) => recurrent::scan(run, scan, sequences, to),
        Op::Wkv(wkv) => wkv::wkv(run, wkv, sequences, to),
        Op::LinearAttention(attention) => {
            linear_attention::linear_attention(run, attention, sequences, to);
        }
        Op::Select { x } => rows::select(run, run.value(*x), to),
        Op::Pool { x, kind } => rows::pool(run, run.value(*x), *kind, to),
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
