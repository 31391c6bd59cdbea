//! Attention, by blocks of keys, so that scores of long contexts need no memory.

use gguf_graph::{Attention, Mask, Memory, PositionBias, StateId};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::cache::Cache;
use crate::run::Run;
use crate::state::{Kept, Sequence};
use crate::value::Value;

/// Keys that are looked at together. Blocks begin at multiples of it, so that sums are in the same
/// order however tokens are cut into batches.
const KEYS: usize = 64;
/// Queries that share the decoding of a block of keys.
const QUERIES: usize = 16;

/// Where the keys or values of a sequence are.
#[derive(Clone, Copy)]
enum Rows<'r> {
    Cache(&'r Cache),
    Value { value: &'r Value, rows: &'r [usize], len: usize },
}

impl Rows<'_> {
    fn count(self) -> usize {
        match self {
            Self::Cache(cache) => cache.rows(),
            Self::Value { rows, .. } => rows.len(),
        }
    }

    /// Rows of a head, one after the other.
    fn read(self, head: usize, first: usize, out: &mut [f32]) {
        match self {
            Self::Cache(cache) => cache.read(head, first, out),
            Self::Value { value, rows, len } => {
                for (row, out) in rows[first..].iter().zip(out.chunks_exact_mut(len)) {
                    out.copy_from_slice(&value.row(*row)[head * len..(head + 1) * len]);
                }
            }
        }
    }
}

/// Puts keys and values where a decoder finds them.
pub(super) fn store(
    key: &Value,
    value: &Value,
    state: StateId,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    out.data.copy_from_slice(&key.data);
    // An encoder runs for one sequence at a time.
    if let [sequence] = sequences {
        push(sequence, state, key, value, 0..key.rows);
    }
}

fn push(
    sequence: &mut Sequence,
    state: StateId,
    key: &Value,
    value: &Value,
    rows: impl Iterator<Item = usize>,
) {
    if let Kept::Cache { keys, values, .. } = &mut sequence.kept[state.0 as usize] {
        for row in rows {
            keys.push(key.row(row));
            values.push(value.row(row));
        }
    }
}

pub(super) fn attention(
    run: &Run<'_>,
    attention: &Attention,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    if let Memory::Cached { key, value, state } = attention.memory {
        let (key, value) = (run.value(key), run.value(value));
        for (sequence, rows) in &run.groups {
            push(&mut sequences[*sequence], state, key, value, rows.iter().copied());
        }
    }
    let groups = run.groups_of(run.value(attention.query));
    let mut tasks = Vec::new();
    for (sequence, rows) in groups.iter() {
        let (keys, values) = sources(run, attention, &sequences[*sequence], rows);
        for head in 0..attention.heads_kv as usize {
            for block in 0..rows.len().div_ceil(QUERIES) {
                let first = block * QUERIES;
                let rows = &rows[first..rows.len().min(first + QUERIES)];
                tasks.push(Task { run, attention, keys, values, head, first, rows });
            }
        }
    }
    let arch = Arch::new();
    let group = (attention.heads / attention.heads_kv) as usize;
    let len = group * attention.value_len as usize;
    let done: Vec<Vec<f32>> = tasks.par_iter().map(|task| arch.dispatch(task)).collect();
    let width = out.width;
    for (task, done) in tasks.iter().zip(done) {
        for (row, done) in task.rows.iter().zip(done.chunks_exact(len)) {
            let start = row * width + task.head * len;
            out.data[start..start + len].copy_from_slice(done);
        }
    }
}

fn sources<'r>(
    run: &'r Run<'_>,
    attention: &Attention,
    sequence: &'r Sequence,
    rows: &'r [usize],
) -> (Rows<'r>, Rows<'r>) {
    match attention.memory {
        Memory::Given { key, value } => {
            let of = |id, len: u32| Rows::Value { value: run.value(id), rows, len: len as usize };
            (of(key, attention.key_len), of(value, attention.value_len))
        }
        Memory::Cached { state, .. } | Memory::Stored { state } => {
            match &sequence.kept[state.0 as usize] {
                Kept::Cache { keys, values, .. } => (Rows::Cache(keys), Rows::Cache(values)),
                Kept::Floats(_) => unreachable!("the graph's states have been checked"),
            }
        }
    }
}

/// The queries of some tokens, of all heads that share one head of keys and values.
struct Task<'r> {
    run: &'r Run<'r>,
    attention: &'r Attention,
    keys: Rows<'r>,
    values: Rows<'r>,
    head: usize,
    /// Number of the first token among those of its sequence in this run.
    first: usize,
    rows: &'r [usize],
}

/// One query: the sum of values so far, of weights, and the greatest score.
struct Sum {
    greatest: f32,
    weights: f32,
    values: Vec<f32>,
}

impl Task<'_> {
    /// The position of a token of the task.
    fn position(&self, number: usize) -> usize {
        match self.run.positions.get(self.rows[number]) {
            Some(position) => *position,
            // Frames are counted from the first.
            None => self.first + number,
        }
    }

    /// The positions that one at `position` sees.
    fn seen(&self, position: usize) -> std::ops::Range<usize> {
        let count = self.keys.count();
        let (first, last) = match self.attention.mask {
            Mask::All => (0, count),
            Mask::Causal => (0, position + 1),
            Mask::Window(n) => ((position + 1).saturating_sub(n as usize), position + 1),
            Mask::Chunk(n) => (position - position % (n as usize).max(1), position + 1),
            Mask::Around(n) => {
                (position.saturating_sub(n as usize / 2), position + n as usize / 2 + 1)
            }
        };
        // What runs without a cache counts its tokens from 0.
        first..last.min(count)
    }
}

impl WithSimd for &Task<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let attention = self.attention;
        let (key_len, value_len) = (attention.key_len as usize, attention.value_len as usize);
        let group = (attention.heads / attention.heads_kv) as usize;
        let query = self.run.value(attention.query);
        let biases = self.run.executor.biases(attention);
        let sinks = self.run.executor.weights.optional(attention.sinks);
        let mut sums: Vec<Sum> = (0..self.rows.len() * group)
            .map(|number| Sum {
                greatest: sinks
                    .map_or(f32::NEG_INFINITY, |sinks| sinks[self.head * group + number % group]),
                weights: if sinks.is_some() { 1.0 } else { 0.0 },
                values: vec![0.0; value_len],
            })
            .collect();
        let seen: Vec<_> = (0..self.rows.len()).map(|n| self.seen(self.position(n))).collect();
        let from = seen.iter().map(|seen| seen.start).min().unwrap_or(0);
        let to = seen.iter().map(|seen| seen.end).max().unwrap_or(0);
        let mut keys = vec![0.0; KEYS * key_len];
        let mut values = vec![0.0; KEYS * value_len];
        let mut scores = [0.0f32; KEYS];
        let mut start = from - from % KEYS;
        while start < to {
            let count = KEYS.min(self.keys.count() - start);
            self.keys.read(self.head, start, &mut keys[..count * key_len]);
            self.values.read(self.head, start, &mut values[..count * value_len]);
            for (number, sum) in sums.iter_mut().enumerate() {
                let (token, in_group) = (number / group, number % group);
                let low = seen[token].start.max(start) - start;
                let high = seen[token].end.min(start + count).saturating_sub(start);
                if low >= high {
                    continue;
                }
                let head = self.head * group + in_group;
                let row = query.row(self.rows[token]);
                let row = &row[head * key_len..(head + 1) * key_len];
                let scores = &mut scores[low..high];
                for (score, key) in
                    scores.iter_mut().zip(keys[low * key_len..].chunks_exact(key_len))
                {
                    *score = dot(simd, row, key) * attention.scale;
                }
                if let Some(cap) = attention.soft_cap {
                    scores.iter_mut().for_each(|score| *score = cap * (*score / cap).tanh());
                }
                biases.add(head, self.position(token), start + low, scores);
                sum.add(simd, scores, &values[low * value_len..]);
            }
            start += KEYS;
        }
        let mut out = Vec::with_capacity(sums.len() * value_len);
        for sum in sums {
            let factor = if sum.weights > 0.0 { 1.0 / sum.weights } else { 0.0 };
            out.extend(sum.values.iter().map(|value| value * factor));
        }
        out
    }
}

impl Sum {
    /// Takes the values of some keys in, by their scores.
    #[inline(always)]
    fn add<S: Simd>(&mut self, simd: S, scores: &mut [f32], values: &[f32]) {
        let greatest = scores.iter().copied().fold(self.greatest, f32::max);
        if greatest > self.greatest {
            let factor = (self.greatest - greatest).exp();
            self.weights *= factor;
            self.values.iter_mut().for_each(|value| *value *= factor);
            self.greatest = greatest;
        }
        for (score, value) in scores.iter_mut().zip(values.chunks_exact(self.values.len())) {
            let weight = (*score - greatest).exp();
            self.weights += weight;
            add_scaled(simd, weight, value, &mut self.values);
        }
    }
}

#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let (a_vectors, a_rest) = S::as_simd_f32s(a);
    let (b_vectors, b_rest) = S::as_simd_f32s(b);
    let mut sum = simd.splat_f32s(0.0);
    for (a, b) in a_vectors.iter().zip(b_vectors) {
        sum = simd.mul_add_f32s(*a, *b, sum);
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    simd.reduce_sum_f32s(sum) + rest
}

#[inline(always)]
fn add_scaled<S: Simd>(simd: S, factor: f32, x: &[f32], out: &mut [f32]) {
    let (x_vectors, x_rest) = S::as_simd_f32s(x);
    let (out_vectors, out_rest) = S::as_mut_simd_f32s(out);
    let factors = simd.splat_f32s(factor);
    for (out, x) in out_vectors.iter_mut().zip(x_vectors) {
        *out = simd.mul_add_f32s(factors, *x, *out);
    }
    for (out, x) in out_rest.iter_mut().zip(x_rest) {
        *out += factor * x;
    }
}

/// What is added to scores for the distance of two positions.
enum Biases<'r> {
    None,
    Slopes(Vec<f32>),
    Buckets { weight: &'r [f32], heads: usize, max_distance: usize, both_sides: bool },
}

impl crate::executor::Executor {
    fn biases(&self, attention: &Attention) -> Biases<'_> {
        match attention.bias {
            PositionBias::None => Biases::None,
            PositionBias::Slopes { max } => Biases::Slopes(
                (0..attention.heads).map(|head| slope(head, attention.heads, max)).collect(),
            ),
            PositionBias::Buckets { weight, max_distance, both_sides } => Biases::Buckets {
                weight: self.weights.floats(weight),
                heads: attention.heads as usize,
                max_distance: max_distance as usize,
                both_sides,
            },
        }
    }
}

impl Biases<'_> {
    /// Adds to the scores of a query with keys from `first` on.
    fn add(&self, head: usize, position: usize, first: usize, scores: &mut [f32]) {
        match self {
            Self::None => {}
            Self::Slopes(slopes) => {
                for (key, score) in (first..).zip(scores) {
                    *score -= slopes[head] * position.abs_diff(key) as f32;
                }
            }
            Self::Buckets { weight, heads, max_distance, both_sides } => {
                let buckets = weight.len() / heads;
                for (key, score) in (first..).zip(scores) {
                    let bucket = bucket(position, key, buckets, *max_distance, *both_sides);
                    *score += weight[bucket * heads + head];
                }
            }
        }
    }
}

/// The slope of a head (ALiBi, arXiv 2108.12409, as its authors extend it to any number of heads).
fn slope(head: u32, heads: u32, max: f32) -> f32 {
    let power = 1 << heads.ilog2();
    if head < power {
        (-max * (head + 1) as f32 / power as f32).exp2()
    } else {
        (-max * (2 * (head - power) + 1) as f32 / (2 * power) as f32).exp2()
    }
}

/// The bucket of a distance (T5, arXiv 1910.10683): half of them for single distances, the others
/// growing as the logarithm.
fn bucket(
    position: usize,
    key: usize,
    buckets: usize,
    max_distance: usize,
    both_sides: bool,
) -> usize {
    let (buckets, start) = match (both_sides, key > position) {
        (true, later) => (buckets / 2, if later { buckets / 2 } else { 0 }),
        (false, _) => (buckets, 0),
    };
    let distance = if both_sides { position.abs_diff(key) } else { position.saturating_sub(key) };
    let exact = buckets / 2;
    if distance < exact {
        return start + distance;
    }
    let (distance, exact_f) = (distance as f32, exact as f32);
    let scale = (max_distance as f32 / exact_f).ln();
    let beyond = (distance / exact_f).ln() / scale * (buckets - exact) as f32;
    start + (exact + beyond as usize).min(buckets - 1)
}
