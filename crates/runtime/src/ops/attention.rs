//! Attention, by blocks of keys, so that scores of long contexts need no memory.

use std::ops::Range;

use gguf_graph::{Attention, BlockSelection, CompressedKv, KvSource, Mask, StateId};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::distance::Biases;
use crate::cache::{BLOCK as KEYS, Cache, turn};
use crate::exp::{exp, tanh};
use crate::run::Run;
use crate::scratch::Scratch;
use crate::state::{Kept, Sequence};
use crate::value::Value;

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

    /// Rows of a head as columns, the first of [`KEYS`] numbers.
    fn read_columns(self, head: usize, first: usize, count: usize, out: &mut [f32]) {
        match self {
            Self::Cache(cache) => cache.read_columns(head, first, count, out),
            Self::Value { value, rows, len } => {
                let rows = rows[first..].iter().take(count);
                turn(rows.map(|row| &value.row(*row)[head * len..(head + 1) * len]), out);
            }
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
    run: &Run<'_>,
    key: &Value,
    value: &Value,
    state: StateId,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    out.data.copy_from_slice(&key.data);
    // An encoder runs for one sequence at a time.
    if let [sequence] = sequences {
        let rows: Vec<usize> = (0..key.rows).collect();
        push(run, sequence, state, (key, Some(value)), &rows);
    }
}

/// Adds keys of tokens to a state, and values if it has some; of blocks those of the last token.
pub(super) fn push(
    run: &Run<'_>,
    sequence: &mut Sequence,
    state: StateId,
    (key, value): (&Value, Option<&Value>),
    rows: &[usize],
) {
    if let Kept::Cache { keys, values, block, .. } = &mut sequence.kept[state.0 as usize] {
        for row in rows {
            // Frames have no positions, and no blocks.
            let ends = |position: &usize| (position + 1).is_multiple_of(*block);
            if run.positions.get(*row).is_none_or(ends) {
                keys.push(key.row(*row));
                if let Some(value) = value {
                    values.push(value.row(*row));
                }
            }
        }
    }
}

pub(super) fn attention(
    run: &Run<'_>,
    attention: &Attention,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    let of_memory = match attention.kv {
        KvSource::Cached { key, value, state } => Some((key, value, state)),
        KvSource::Batch { .. } | KvSource::Encoder { .. } => None,
    };
    let of_blocks = attention.compressed.map(|blocks| (blocks.key, blocks.value, blocks.state));
    for (key, value, state) in of_memory.into_iter().chain(of_blocks) {
        let of_row = (run.value(key), Some(run.value(value)));
        for (sequence, rows) in &run.groups {
            let sequence = &mut sequences[*sequence];
            // Another operation may have kept them already.
            if sequence.is_before_run(state) {
                push(run, sequence, state, of_row, rows);
            }
        }
    }
    let groups = run.groups_of(run.value(attention.query));
    let sources: Vec<Vec<Source>> = groups
        .iter()
        .map(|(sequence, rows)| sources(run, attention, &sequences[*sequence], rows))
        .collect();
    let mut tasks = Vec::new();
    for ((_, rows), sources) in groups.iter().zip(&sources) {
        for head in 0..attention.heads_kv as usize {
            for block in 0..rows.len().div_ceil(QUERIES) {
                let first = block * QUERIES;
                let rows = &rows[first..rows.len().min(first + QUERIES)];
                tasks.push(Task { run, attention, sources, head, first, rows });
            }
        }
    }
    let arch = Arch::new();
    let group = (attention.heads / attention.heads_kv) as usize;
    let len = group * attention.value_len as usize;
    let done = |task| if run.watch.ended() { Vec::new() } else { arch.dispatch(task) };
    let done: Vec<Vec<f32>> = tasks.par_iter().map(done).collect();
    let width = out.width;
    for (task, done) in tasks.iter().zip(done) {
        for (row, done) in task.rows.iter().zip(done.chunks_exact(len)) {
            let start = row * width + task.head * len;
            out.data[start..start + len].copy_from_slice(done);
        }
    }
}

/// Keys and values of a sequence that are looked at.
#[derive(Clone, Copy)]
struct Source<'r> {
    keys: Rows<'r>,
    values: Rows<'r>,
    /// Tokens that one of them stands for.
    block: usize,
    /// Which of them are looked at alone.
    among: Option<BlockSelection>,
}

fn sources<'r>(
    run: &'r Run<'_>,
    attention: &Attention,
    sequence: &'r Sequence,
    rows: &'r [usize],
) -> Vec<Source<'r>> {
    let kept = |state: StateId, among| match &sequence.kept[state.0 as usize] {
        Kept::Cache { keys, values, block, .. } => {
            Source { keys: Rows::Cache(keys), values: Rows::Cache(values), block: *block, among }
        }
        _ => unreachable!("the graph's states have been checked"),
    };
    let among = attention.selection;
    let first = match attention.kv {
        KvSource::Batch { key, value } => {
            let of = |id, len: u32| Rows::Value { value: run.value(id), rows, len: len as usize };
            let (keys, values) = (of(key, attention.key_len), of(value, attention.value_len));
            Source { keys, values, block: 1, among }
        }
        KvSource::Cached { state, .. } | KvSource::Encoder { state } => kept(state, among),
    };
    let blocks = attention.compressed.map(|CompressedKv { state, indices: chosen, .. }| {
        kept(
            state,
            chosen.map(|chosen| BlockSelection {
                indices: chosen,
                groups: 1,
                block: 1,
                include_tail: false,
            }),
        )
    });
    [first].into_iter().chain(blocks).collect()
}

/// The queries of some tokens, of all heads that share one head of keys and values.
struct Task<'r> {
    run: &'r Run<'r>,
    attention: &'r Attention,
    sources: &'r [Source<'r>],
    head: usize,
    /// Number of the first token among those of its sequence in this run.
    first: usize,
    rows: &'r [usize],
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

    /// Positions of a block, and of each block whether a token of the task looks at it; `None` if it looks
    /// at all.
    fn chosen(&self, source: Source<'_>, token: usize) -> Option<(usize, Vec<bool>)> {
        let among = source.among?;
        let row = self.run.value(among.indices).row(self.rows[token]);
        let count = row.len() / among.groups as usize;
        let group = self.head * among.groups as usize / self.attention.heads_kv as usize;
        let block = among.block as usize;
        let mut chosen = vec![false; source.keys.count() / block + 1];
        for number in &row[group * count..(group + 1) * count] {
            // Below 0 there is none.
            if *number >= 0.0
                && let Some(chosen) = chosen.get_mut(*number as usize)
            {
                *chosen = true;
            }
        }
        let position = self.position(token);
        if among.include_tail
            && !(position + 1).is_multiple_of(block)
            && let Some(chosen) = chosen.get_mut(position / block)
        {
            *chosen = true;
        }
        Some((block, chosen))
    }

    /// What one at `position` sees of a source.
    fn seen(&self, source: Source<'_>, position: usize) -> Range<usize> {
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
        };
        // What runs without a cache counts its tokens from 0.
        first..last.min(count)
    }

    /// Adds what a source has for the queries.
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
        let chosen: Vec<_> = (0..self.rows.len()).map(|n| self.chosen(source, n)).collect();
        let positions = (0..self.rows.len()).map(|n| self.position(n));
        let seen: Vec<_> = positions.map(|position| self.seen(source, position)).collect();
        let from = seen.iter().map(|seen| seen.start).min().unwrap_or(0);
        let to = seen.iter().map(|seen| seen.end).max().unwrap_or(0);
        let mut keys = Scratch::new(KEYS * key_len);
        let mut values = Scratch::new(KEYS * value_len);
        let mut scores = Scratch::new(queries.len() * KEYS);
        let mut start = from - from % KEYS;
        while start < to {
            let count = KEYS.min(source.keys.count() - start);
            source.keys.read_columns(self.head, start, count, &mut keys);
            source.values.read(self.head, start, &mut values[..count * value_len]);
            scores.fill(0.0);
            add_rows(simd, queries, &keys, &mut scores);
            let mut weighed = vec![0..0; queries.len()];
            let lines = scores.as_chunks_mut().0.iter_mut().zip(&mut weighed);
            let lines = lines.zip(&mut *sums).zip(out.chunks_exact_mut(value_len));
            for (number, (((scores, weighed), sum), out)) in lines.enumerate() {
                let (token, head) = (number / group, self.head * group + number % group);
                let low = seen[token].start.clamp(start, start + count) - start;
                let high = seen[token].end.clamp(start + low, start + count) - start;
                if low == high {
                    continue;
                }
                scores[..low].fill(f32::NEG_INFINITY);
                scores[high..].fill(f32::NEG_INFINITY);
                if let Some((block, chosen)) = &chosen[token] {
                    for (score, position) in scores.iter_mut().zip(start..).take(high).skip(low) {
                        if !chosen.get(position / block).is_some_and(|is| *is) {
                            *score = f32::NEG_INFINITY;
                        }
                    }
                    if scores[low..high].iter().all(|score| *score == f32::NEG_INFINITY) {
                        continue;
                    }
                }
                *weighed = low..high;
                let seen = &mut scores[low..high];
                seen.iter_mut().for_each(|score| *score *= attention.scale);
                if let Some(cap) = attention.soft_cap {
                    seen.iter_mut().for_each(|score| *score = cap * tanh(*score / cap));
                }
                biases.add(head, self.position(token), start + low, seen);
                sum.add(scores, out);
            }
            add_weighed(simd, &scores, &weighed, &values[..count * value_len], out);
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
        let biases = self.run.executor.biases(attention);
        let sinks = self.run.executor.weights.optional(attention.sinks);
        let queries: Vec<&[f32]> = (0..self.rows.len() * group)
            .map(|number| {
                let head = self.head * group + number % group;
                &query.row(self.rows[number / group])[head * key_len..(head + 1) * key_len]
            })
            .collect();
        let mut sums: Vec<Sum> = (0..queries.len())
            .map(|number| match sinks {
                Some(sinks) => {
                    Sum { greatest: sinks[self.head * group + number % group], weights: 1.0 }
                }
                None => Sum { greatest: f32::NEG_INFINITY, weights: 0.0 },
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
        out
    }
}

/// The greatest score of a query so far, and the sum of the weights of what it has seen.
struct Sum {
    greatest: f32,
    weights: f32,
}

impl Sum {
    /// Makes weights of scores, and scales what was summed before.
    #[inline(always)]
    fn add(&mut self, scores: &mut [f32; KEYS], values: &mut [f32]) {
        let mut greatest = [self.greatest; 16];
        for scores in scores.as_chunks::<16>().0 {
            for (greatest, score) in greatest.iter_mut().zip(scores) {
                *greatest = if *score > *greatest { *score } else { *greatest };
            }
        }
        let greatest = greatest.into_iter().fold(self.greatest, f32::max);
        if greatest > self.greatest {
            let factor = exp(self.greatest - greatest);
            self.weights *= factor;
            values.iter_mut().for_each(|value| *value *= factor);
            self.greatest = greatest;
        }
        let mut weights = [0.0; 16];
        for scores in scores.as_chunks_mut::<16>().0 {
            for (weight, score) in weights.iter_mut().zip(scores) {
                *score = exp(*score - greatest);
                *weight += *score;
            }
        }
        self.weights += weights.into_iter().sum::<f32>();
    }
}

/// Adds to each row of `out` the rows that it weighs: no others, which may be NaN. `scores` has [`KEYS`]
/// weights for each.
#[inline(always)]
fn add_weighed<S: Simd>(
    simd: S,
    scores: &[f32],
    weighed: &[Range<usize>],
    rows: &[f32],
    out: &mut [f32],
) {
    let len = out.len() / weighed.len();
    let mut first = 0;
    // Heads of one token weigh the same rows, and all that see a block to its end do.
    for same in weighed.chunk_by(|a, b| a == b) {
        let all = first..first + same.len();
        first = all.end;
        let seen = same[0].clone();
        if seen.is_empty() {
            continue;
        }
        let weights = scores.chunks_exact(KEYS).take(all.end).skip(all.start);
        let weights: Vec<_> = weights.map(|scores| &scores[seen.clone()]).collect();
        let rows = &rows[seen.start * len..seen.end * len];
        add_rows(simd, &weights, rows, &mut out[all.start * len..all.end * len]);
    }
}

/// Sums of rows that fit into registers together.
const AT_ONCE: usize = 3;

/// Adds rows to each row of `out`, each by its weight: as many as it has weights.
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

/// The same for some of them, by columns that fit into registers.
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
        // All weights of a row, and one vector of it at a time: more would not fit into registers.
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
