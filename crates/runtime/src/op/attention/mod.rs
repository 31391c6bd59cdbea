//! `attention`, computed block by block of keys, so that scores of long contexts take no memory.

#[cfg(target_arch = "x86_64")]
mod int8;

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use gguf::TensorType;
use gguf_graph::{Attention, BlockSelection, CompressedKv, KvSource, Mask, StateId};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::Kernel;
use super::kv_store::append;
use super::position_bias::Biases;
use crate::exp::{exp, tanh};
use crate::instructions::SimdToken;
use crate::kv_cache::{BLOCK as KEYS, KvCache, transpose};
use crate::matmul::Precision;
use crate::rotation::rotate;
use crate::run::Run;
use crate::scratch::Scratch;
use crate::sequence::{Sequence, SequenceState};
use crate::value::Value;

/// Number of queries that share the decoding of a block of keys, unless these are of more heads or fewer tokens.
const QUERIES: usize = 112;

/// Fewest and most tokens whose queries share the decoding of a block of keys.
const TOKENS: RangeInclusive<usize> = 16..=64;

/// Maximum number of queries for which the next block is prefetched: for more, products take longer than reading it.
const PREFETCHING: usize = 16;

/// Products of queries with a block of keys, and of weights with a block of values, in another number format.
trait BlockProducts {
    /// Reads up to [`KEYS`] keys and values of a head, rows of blocks. Returns whether the format can represent them.
    fn read(&mut self, keys: &[u8], values: &[u8]) -> bool;

    /// Computes the product of each query with each key, multiplied by the scale of the scores: `scores` has [`KEYS`] per
    /// query. Those of keys that were not read are undefined.
    fn multiply(&self, scores: &mut [f32]);

    /// As [`Sum::add`].
    fn add_scores(&self, sum: &mut Sum, scores: &mut [f32; KEYS], values: &mut [f32]);

    /// Adds to each row of `out` the values, weighted by [`KEYS`] weights between 0 and 1. Those of values that were not read
    /// are 0.
    fn add_weighted(&self, weights: &[f32], out: &mut [f32]);
}

/// Returns the queries in INT8, if the processor multiplies a block of keys in INT8 faster than in F32.
#[cfg(target_arch = "x86_64")]
fn int8_products(
    simd: SimdToken,
    queries: &[&[f32]],
    scale: f32,
    origin: &[f32],
    value_len: usize,
) -> Option<Box<dyn BlockProducts>> {
    let SimdToken::Avx512(simd, ..) = simd else { return None };
    Some(Box::new(int8::Int8::new(simd, queries, scale, origin, value_len)))
}

#[cfg(not(target_arch = "x86_64"))]
fn int8_products(
    _: SimdToken,
    _: &[&[f32]],
    _: f32,
    _: &[f32],
    _: usize,
) -> Option<Box<dyn BlockProducts>> {
    None
}

/// Keys of a sequence.
#[derive(Clone, Copy)]
enum Keys<'r> {
    Cache(&'r KvCache),
    /// Columns of blocks of [`KEYS`] rows of each head.
    Columns { columns: &'r [f32], rows: usize, len: usize },
}

impl<'r> Keys<'r> {
    /// Whether the keys that are read are rotated.
    fn are_rotated(self) -> bool {
        matches!(self, Self::Cache(cache) if cache.is_rotated())
    }

    fn count(self) -> usize {
        match self {
            Self::Cache(cache) => cache.rows(),
            Self::Columns { rows, .. } => rows,
        }
    }

    /// Returns keys of a head as columns: the first of [`KEYS`] elements each. They are read into `scratch` unless they are
    /// stored so.
    fn columns<'s>(self, head: usize, first: usize, count: usize, scratch: &'s mut [f32]) -> &'s [f32]
    where
        'r: 's,
    {
        match self {
            Self::Cache(cache) => match cache.stored(head, first, count) {
                Some(stored) => stored,
                None => {
                    cache.read_columns(head, first, count, scratch);
                    scratch
                }
            },
            Self::Columns { columns, rows, len } => {
                let block = head * rows.div_ceil(KEYS) + first / KEYS;
                &columns[block * KEYS * len..(block + 1) * KEYS * len]
            }
        }
    }
}

/// Values of a sequence.
#[derive(Clone, Copy)]
enum Values<'r> {
    Cache(&'r KvCache),
    Rows { value: &'r Value, rows: &'r [usize], len: usize },
}

impl<'r> Values<'r> {
    /// Whether the values that are read are rotated.
    fn are_rotated(self) -> bool {
        matches!(self, Self::Cache(cache) if cache.is_rotated())
    }

    /// Returns values of a head, as many as `scratch` holds. They are read into it unless they are stored so.
    fn rows<'s>(self, head: usize, first: usize, count: usize, scratch: &'s mut [f32]) -> &'s [f32]
    where
        'r: 's,
    {
        match self {
            Self::Cache(cache) => {
                if let Some(stored) = cache.stored(head, first, count) {
                    return stored;
                }
                cache.read(head, first, scratch);
            }
            Self::Rows { value, rows, len } => {
                for (row, out) in rows[first..].iter().zip(scratch.chunks_exact_mut(len)) {
                    out.copy_from_slice(&value.row(*row)[head * len..(head + 1) * len]);
                }
            }
        }
        scratch
    }
}

/// Returns keys as columns ([`Keys::Columns`]), which all tasks of a head read.
fn columns(value: &Value, rows: &[usize], len: usize, heads: usize) -> Vec<f32> {
    let blocks = rows.len().div_ceil(KEYS);
    let mut columns = vec![0.0; heads * blocks * KEYS * len];
    let chunks = columns.par_chunks_exact_mut((KEYS * len).max(1)).enumerate();
    chunks.for_each(|(number, out)| {
        let (head, block) = (number / blocks, number % blocks);
        let rows = rows[block * KEYS..].iter().take(KEYS);
        transpose(rows.map(|row| &value.row(*row)[head * len..(head + 1) * len]), out);
    });
    columns
}

impl Kernel for Attention {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        append_all(self, run, sequences);
        let groups = run.groups_of(run.value(self.query));
        let groups = match self.kv {
            KvSource::Encoder { state } => Cow::Owned(by_encoder_output(&groups, sequences, state)),
            KvSource::Batch { .. } | KvSource::Cached { .. } => groups,
        };
        let keys: Vec<Vec<f32>> = match self.kv {
            KvSource::Batch { key, .. } => {
                let (len, heads) = (self.key_len as usize, self.heads_kv as usize);
                let columns = |(_, rows): &(_, Vec<_>)| columns(run.value(key), rows, len, heads);
                groups.iter().map(columns).collect()
            }
            KvSource::Cached { .. } | KvSource::Encoder { .. } => vec![Vec::new(); groups.len()],
        };
        let sources: Vec<Vec<Source>> = groups
            .iter()
            .zip(&keys)
            .map(|((sequence, rows), keys)| sources(run, self, &sequences[*sequence], rows, keys))
            .collect();
        let mut tasks = Vec::new();
        let group = (self.heads / self.heads_kv) as usize;
        let tokens = (QUERIES / group).clamp(*TOKENS.start(), *TOKENS.end());
        for ((_, rows), sources) in groups.iter().zip(&sources) {
            for head in 0..self.heads_kv as usize {
                for block in 0..rows.len().div_ceil(tokens) {
                    let first = block * tokens;
                    let rows = &rows[first..rows.len().min(first + tokens)];
                    tasks.push(Task { run, attention: self, sources, head, first, rows });
                }
            }
        }
        let arch = Arch::new();
        let len = group * self.value_len as usize;
        let compute = |task| if run.watch.cancelled() { Vec::new() } else { arch.dispatch(task) };
        let results: Vec<Vec<f32>> = tasks.par_iter().map(compute).collect();
        let width = out.width;
        for (task, result) in tasks.iter().zip(results) {
            for (row, result) in task.rows.iter().zip(result.chunks_exact(len)) {
                let start = row * width + task.head * len;
                out.data[start..start + len].copy_from_slice(result);
            }
        }
    }

    fn overwrites(&self) -> bool {
        true
    }
}

/// Joins the rows of sequences that share an output of the encoder, so that they read it together.
fn by_encoder_output(
    groups: &[(usize, Vec<usize>)],
    sequences: &[Sequence],
    state: StateId,
) -> Vec<(usize, Vec<usize>)> {
    let mut joined: Vec<(usize, Vec<usize>)> = Vec::new();
    for (sequence, rows) in groups {
        let shares =
            |other: &&mut (usize, _)| sequences[other.0].shares(state, &sequences[*sequence]);
        match joined.iter_mut().find(shares) {
            Some((_, all)) => all.extend(rows),
            None => joined.push((*sequence, rows.clone())),
        }
    }
    joined
}

/// Appends keys and values of the batch to the KV caches.
fn append_all(attention: &Attention, run: &Run<'_>, sequences: &mut [Sequence]) {
    let tokens = match attention.kv {
        KvSource::Cached { key, value, state } => Some((key, value, state)),
        KvSource::Batch { .. } | KvSource::Encoder { .. } => None,
    };
    let blocks = attention.compressed.map(|blocks| (blocks.key, blocks.value, blocks.state));
    for (key, value, state) in tokens.into_iter().chain(blocks) {
        let key_value = (run.value(key), Some(run.value(value)));
        for (sequence, rows) in &run.groups {
            let sequence = &mut sequences[*sequence];
            // Another operation may have appended them already.
            if sequence.is_before_run(state) {
                append(run, sequence, state, key_value, rows);
            }
        }
    }
}

/// Keys and values of a sequence that tokens attend to.
#[derive(Clone, Copy)]
struct Source<'r> {
    keys: Keys<'r>,
    values: Values<'r>,
    /// Tokens per row.
    block: usize,
    /// Restriction to selected blocks of rows.
    selection: Option<BlockSelection>,
}

/// Returns the tokens and the compressed blocks of a sequence, given the keys of its rows if they are not cached.
fn sources<'r>(
    run: &'r Run<'_>,
    attention: &Attention,
    sequence: &'r Sequence,
    rows: &'r [usize],
    keys: &'r [f32],
) -> Vec<Source<'r>> {
    let cached = |state: StateId, selection| match sequence.state(state) {
        SequenceState::Kv { keys, values, block } => {
            Source { keys: Keys::Cache(keys), values: Values::Cache(values), block: *block, selection }
        }
        SequenceState::Encoder(encoded) => {
            let (keys, values) = (Keys::Cache(&encoded.keys), Values::Cache(&encoded.values));
            Source { keys, values, block: 1, selection }
        }
        _ => unreachable!("the graph was checked"),
    };
    let tokens = match attention.kv {
        KvSource::Batch { value, .. } => {
            let (key_len, len) = (attention.key_len as usize, attention.value_len as usize);
            Source {
                keys: Keys::Columns { columns: keys, rows: rows.len(), len: key_len },
                values: Values::Rows { value: run.value(value), rows, len },
                block: 1,
                selection: attention.selection,
            }
        }
        KvSource::Cached { state, .. } | KvSource::Encoder { state } => {
            cached(state, attention.selection)
        }
    };
    let blocks = attention.compressed.map(|CompressedKv { state, indices, .. }| {
        let selection = |indices| BlockSelection { indices, groups: 1, block: 1, include_tail: false };
        cached(state, indices.map(selection))
    });
    [tokens].into_iter().chain(blocks).collect()
}

/// Queries of some tokens, of all heads that share a key head.
struct Task<'r> {
    run: &'r Run<'r>,
    attention: &'r Attention,
    sources: &'r [Source<'r>],
    head: usize,
    /// Number of the first token among those of its sequence in the batch.
    first: usize,
    rows: &'r [usize],
}

impl Task<'_> {
    /// Returns the position of a token of the task.
    fn position(&self, number: usize) -> usize {
        match self.run.positions.get(self.rows[number]) {
            Some(position) => *position,
            // Frames are counted from 0.
            None => self.first + number,
        }
    }

    /// Returns the positions per block, and for each block whether a token of the task attends to it; `None` if
    /// it attends to all.
    fn selected(&self, source: Source<'_>, token: usize) -> Option<(usize, Vec<bool>)> {
        let selection = source.selection?;
        let row = self.run.value(selection.indices).row(self.rows[token]);
        let count = row.len() / selection.groups as usize;
        let group = self.head * selection.groups as usize / self.attention.heads_kv as usize;
        let block = selection.block as usize;
        let mut selected = vec![false; source.keys.count() / block + 1];
        for index in &row[group * count..(group + 1) * count] {
            // Negative indices select nothing.
            if *index >= 0.0
                && let Some(selected) = selected.get_mut(*index as usize)
            {
                *selected = true;
            }
        }
        let position = self.position(token);
        if selection.include_tail
            && !(position + 1).is_multiple_of(block)
            && let Some(selected) = selected.get_mut(position / block)
        {
            *selected = true;
        }
        Some((block, selected))
    }

    /// Returns the rows of a source that the mask allows for a position.
    fn allowed(&self, source: Source<'_>, position: usize) -> Range<usize> {
        let count = source.keys.count();
        if source.block > 1 {
            return 0..((position + 1) / source.block).min(count);
        }
        let (first, last) = match self.attention.mask {
            Mask::Full => (0, count),
            Mask::Causal => (0, position + 1),
            Mask::SlidingWindow(n) => ((position + 1).saturating_sub(n as usize), position + 1),
            Mask::Chunked(n) => (position - position % (n as usize).max(1), position + 1),
            Mask::SymmetricWindow(n) => {
                (position.saturating_sub(n as usize / 2), position + n as usize / 2 + 1)
            }
            Mask::LookaheadWindow(n) => ((position + 1).saturating_sub(n as usize), count),
        };
        // Without a cache, positions of a batch begin at 0.
        first..last.min(count)
    }

    /// Returns the queries in INT8, and the keys and values, if products with the source are in INT8: those of caches in
    /// Q8_0, where matrices are multiplied in INT8, too.
    fn in_int8<'r>(
        &self,
        source: Source<'r>,
        queries: &[&[f32]],
    ) -> Option<(Box<dyn BlockProducts>, &'r KvCache, &'r KvCache)> {
        let executor = self.run.executor;
        let (Keys::Cache(keys), Values::Cache(values)) = (source.keys, source.values) else {
            return None;
        };
        let are_q8_0 = [keys, values].iter().all(|cache| cache.tensor_type() == TensorType::Q8_0);
        if executor.precision != Precision::Fast || !are_q8_0 {
            return None;
        }
        let (len, value_len) = (self.attention.key_len, self.attention.value_len as usize);
        let origin = keys.origin().chunks_exact(len as usize).nth(self.head)?;
        let scale = self.attention.scale;
        let products = int8_products(executor.simd, queries, scale, origin, value_len)?;
        Some((products, keys, values))
    }

    /// Adds the weighted values of a source to `out`.
    #[inline(always)]
    fn add<S: Simd>(
        &self,
        simd: S,
        source: Source<'_>,
        queries: &[&[f32]],
        biases: &Biases<'_>,
        sums: &mut [Sum],
        out: &mut [f32],
    ) {
        let attention = self.attention;
        let (key_len, value_len) = (attention.key_len as usize, attention.value_len as usize);
        let group = (attention.heads / attention.heads_kv) as usize;
        let selected: Vec<_> = (0..self.rows.len()).map(|n| self.selected(source, n)).collect();
        let positions = (0..self.rows.len()).map(|n| self.position(n));
        let allowed: Vec<_> = positions.map(|position| self.allowed(source, position)).collect();
        let from = allowed.iter().map(|allowed| allowed.start).min().unwrap_or(0);
        let to = allowed.iter().map(|allowed| allowed.end).max().unwrap_or(0);
        let mut int8 = self.in_int8(source, queries);
        let mut keys = Scratch::new(KEYS * key_len);
        let mut values = Scratch::new(KEYS * value_len);
        let mut scores = Scratch::new(queries.len() * KEYS);
        let mut start = from - from % KEYS;
        while start < to {
            let count = KEYS.min(source.keys.count() - start);
            if queries.len() <= PREFETCHING
                && let (Keys::Cache(keys), Values::Cache(values)) = (source.keys, source.values)
                && let next @ 1.. = KEYS.min(source.keys.count() - start - count)
            {
                keys.prefetch(self.head, start + KEYS, next);
                values.prefetch(self.head, start + KEYS, next);
            }
            let int8 = int8.as_mut().and_then(|(products, keys, values)| {
                let blocks = [keys, values].map(|cache| cache.blocks(self.head, start, count));
                products.read(blocks[0], blocks[1]).then_some(products)
            });
            let values = match &int8 {
                Some(int8) => {
                    int8.multiply(&mut scores);
                    &[]
                }
                None => {
                    let keys = source.keys.columns(self.head, start, count, &mut keys);
                    scores.fill(0.0);
                    add_rows(simd, queries, keys, &mut scores);
                    source.values.rows(self.head, start, count, &mut values[..count * value_len])
                }
            };
            let mut weighted = vec![0..0; queries.len()];
            let lines = scores.as_chunks_mut().0.iter_mut().zip(&mut weighted);
            let lines = lines.zip(&mut *sums).zip(out.chunks_exact_mut(value_len));
            for (number, (((scores, weighted), sum), out)) in lines.enumerate() {
                let (token, head) = (number / group, self.head * group + number % group);
                let low = allowed[token].start.clamp(start, start + count) - start;
                let high = allowed[token].end.clamp(start + low, start + count) - start;
                if low == high {
                    scores.fill(0.0);
                    continue;
                }
                scores[..low].fill(f32::NEG_INFINITY);
                scores[high..].fill(f32::NEG_INFINITY);
                if let Some((block, selected)) = &selected[token] {
                    for (score, position) in scores.iter_mut().zip(start..).take(high).skip(low) {
                        if !selected.get(position / block).is_some_and(|is| *is) {
                            *score = f32::NEG_INFINITY;
                        }
                    }
                    if scores[low..high].iter().all(|score| *score == f32::NEG_INFINITY) {
                        scores.fill(0.0);
                        continue;
                    }
                }
                *weighted = low..high;
                let in_range = &mut scores[low..high];
                if int8.is_none() {
                    in_range.iter_mut().for_each(|score| *score *= attention.scale);
                }
                if let Some(cap) = attention.soft_cap {
                    in_range.iter_mut().for_each(|score| *score = cap * tanh(*score / cap));
                }
                biases.add(head, self.position(token), start + low, in_range);
                match &int8 {
                    Some(int8) => int8.add_scores(sum, scores, out),
                    None => sum.add(scores, out),
                }
            }
            match int8 {
                Some(int8) => int8.add_weighted(&scores, out),
                None => add_weighted(simd, &scores, &weighted, values, out),
            }
            start += KEYS;
        }
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
        let biases = Biases::new(&self.run.executor.weights, attention);
        let sinks = self.run.executor.weights.optional(attention.sinks);
        let of_number = |number: usize| {
            let head = self.head * group + number % group;
            &query.row(self.rows[number / group])[head * key_len..(head + 1) * key_len]
        };
        let mut queries: Vec<&[f32]> = (0..self.rows.len() * group).map(of_number).collect();
        // All sources are caches of the same type, or there is one.
        let rotated;
        if self.sources.iter().any(|source| source.keys.are_rotated()) {
            let mut copy = queries.concat();
            copy.chunks_exact_mut(key_len).for_each(rotate);
            rotated = copy;
            queries = rotated.chunks_exact(key_len).collect();
        }
        let mut sums: Vec<Sum> = (0..queries.len())
            .map(|number| match sinks {
                Some(sinks) => {
                    Sum { max: sinks[self.head * group + number % group], weights: 1.0 }
                }
                None => Sum { max: f32::NEG_INFINITY, weights: 0.0 },
            })
            .collect();
        let mut out = vec![0.0; queries.len() * value_len];
        for source in self.sources {
            self.add(simd, *source, &queries, &biases, &mut sums, &mut out);
        }
        for (sum, out) in sums.iter().zip(out.chunks_exact_mut(value_len)) {
            let factor = if sum.weights > 0.0 { 1.0 / sum.weights } else { 0.0 };
            out.iter_mut().for_each(|value| *value *= factor);
        }
        if self.sources.iter().any(|source| source.values.are_rotated()) {
            out.chunks_exact_mut(value_len).for_each(rotate);
        }
        out
    }
}

/// Online softmax of a query: the maximum score so far, and the sum of all weights relative to it.
struct Sum {
    max: f32,
    weights: f32,
}

impl Sum {
    /// Replaces scores by weights, and rescales the values summed before.
    #[inline(always)]
    fn add(&mut self, scores: &mut [f32; KEYS], values: &mut [f32]) {
        let mut lanes = [self.max; 16];
        for scores in scores.as_chunks::<16>().0 {
            for (lane, score) in lanes.iter_mut().zip(scores) {
                *lane = if *score > *lane { *score } else { *lane };
            }
        }
        let max = self.max.max(max_of(lanes));
        if max > self.max {
            let factor = exp(self.max - max);
            self.weights *= factor;
            values.iter_mut().for_each(|value| *value *= factor);
            self.max = max;
        }
        let mut weights = [0.0; 16];
        for scores in scores.as_chunks_mut::<16>().0 {
            for (weight, score) in weights.iter_mut().zip(scores) {
                *score = exp(*score - max);
                *weight += *score;
            }
        }
        self.weights += weights.into_iter().sum::<f32>();
    }
}

/// Returns the maximum of lanes by comparing halves: few steps that depend on each other.
#[inline(always)]
fn max_of(lanes: [f32; 16]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let eight: [f32; 8] = std::array::from_fn(|i| larger(lanes[i], lanes[i + 8]));
    let four: [f32; 4] = std::array::from_fn(|i| larger(eight[i], eight[i + 4]));
    let two: [f32; 2] = std::array::from_fn(|i| larger(four[i], four[i + 2]));
    larger(two[0], two[1])
}

/// Adds to each row of `out` the rows within its range, weighted. Rows outside may be NaN. `scores` has [`KEYS`]
/// weights per row of `out`.
#[inline(always)]
fn add_weighted<S: Simd>(
    simd: S,
    scores: &[f32],
    ranges: &[Range<usize>],
    rows: &[f32],
    out: &mut [f32],
) {
    let len = out.len() / ranges.len();
    let mut first = 0;
    // Heads of one token have the same range, and so have all tokens that attend to a whole block.
    for same in ranges.chunk_by(|a, b| a == b) {
        let all = first..first + same.len();
        first = all.end;
        let range = same[0].clone();
        if range.is_empty() {
            continue;
        }
        let weights = scores.chunks_exact(KEYS).take(all.end).skip(all.start);
        let weights: Vec<_> = weights.map(|scores| &scores[range.clone()]).collect();
        let rows = &rows[range.start * len..range.end * len];
        add_rows(simd, &weights, rows, &mut out[all.start * len..all.end * len]);
    }
}

/// Rows of sums that fit into registers.
const AT_ONCE: usize = 3;

/// Adds rows to each row of `out`, weighted: as many as it has weights.
#[inline(always)]
fn add_rows<S: Simd>(simd: S, weights: &[&[f32]], rows: &[f32], out: &mut [f32]) {
    let len = out.len() / weights.len();
    let groups = weights.chunks(AT_ONCE).zip(out.chunks_mut(AT_ONCE * len));
    for (weights, out) in groups {
        if let [a, b, c] = weights {
            let (x, rest) = out.split_at_mut(len);
            let (y, z) = rest.split_at_mut(len);
            add_columns(simd, [a, b, c], rows, [x, y, z]);
        } else {
            for (weights, out) in weights.iter().zip(out.chunks_exact_mut(len)) {
                add_columns(simd, [weights], rows, [out]);
            }
        }
    }
}

/// Adds weighted rows to `Q` rows of `out`, by columns that fit into registers.
#[inline(always)]
fn add_columns<S: Simd, const Q: usize>(
    simd: S,
    weights: [&[f32]; Q],
    rows: &[f32],
    out: [&mut [f32]; Q],
) {
    let len = out[0].len();
    let mut outs = out.map(|out| S::as_mut_simd_f32s(out));
    let vectors = outs[0].0.len();
    let mut first = 0;
    while first < vectors {
        if first + 4 <= vectors {
            add_vectors::<S, Q, 4>(simd, weights, rows, len, first, &mut outs);
            first += 4;
        } else {
            add_vectors::<S, Q, 1>(simd, weights, rows, len, first, &mut outs);
            first += 1;
        }
    }
    for (weights, (_, rest)) in weights.iter().zip(&mut outs) {
        if rest.is_empty() {
            continue;
        }
        let start = len - rest.len();
        for (weight, row) in weights.iter().zip(rows.chunks_exact(len)) {
            for (out, x) in rest.iter_mut().zip(&row[start..]) {
                *out += weight * x;
            }
        }
    }
}

#[inline(always)]
fn add_vectors<S: Simd, const Q: usize, const N: usize>(
    simd: S,
    weights: [&[f32]; Q],
    rows: &[f32],
    len: usize,
    first: usize,
    outs: &mut [(&mut [S::f32s], &mut [f32]); Q],
) {
    let mut sums = [[simd.splat_f32s(0.0); N]; Q];
    for (sums, (out, _)) in sums.iter_mut().zip(&*outs) {
        sums.copy_from_slice(&out[first..first + N]);
    }
    let weights = weights.map(|of_row| &of_row[..weights[0].len()]);
    for (number, row) in rows.chunks_exact(len).enumerate().take(weights[0].len()) {
        let (row, _) = S::as_simd_f32s(row);
        let Some(row) = row.get(first..first + N) else { return };
        // Registers hold all weights of a row, and one vector of it at a time.
        let mut of_row = [simd.splat_f32s(0.0); Q];
        for (weight, weights) in of_row.iter_mut().zip(&weights) {
            *weight = simd.splat_f32s(weights[number]);
        }
        for (n, x) in row.iter().enumerate() {
            for (sums, weight) in sums.iter_mut().zip(of_row) {
                sums[n] = simd.mul_add_f32s(weight, *x, sums[n]);
            }
        }
    }
    for ((out, _), sums) in outs.iter_mut().zip(sums) {
        out[first..first + N].copy_from_slice(&sums);
    }
}
