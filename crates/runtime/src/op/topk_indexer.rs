//! `topk_indexer`

use gguf_graph::TopkIndexer;
use rayon::prelude::*;

use super::Kernel;
use super::kv_store::append;
use crate::kv_cache::{BLOCK, KvCache};
use crate::run::Run;
use crate::sequence::{Sequence, SequenceState};
use crate::value::Value;

impl Kernel for TopkIndexer {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        let key = run.value(self.key);
        for (sequence, rows) in &run.groups {
            append(run, &mut sequences[*sequence], self.state, (key, None), rows);
        }
        let mut sequence_of_row = vec![0; out.rows];
        for (sequence, rows) in &run.groups {
            rows.iter().for_each(|row| sequence_of_row[*row] = *sequence);
        }
        out.data.par_chunks_exact_mut(out.width).enumerate().for_each(|(row, out)| {
            if let SequenceState::Kv { keys, block, .. } =
                sequences[sequence_of_row[row]].state(self.state)
                && !run.watch.cancelled()
            {
                let scores = scores(run, self, keys, *block, row);
                for (scores, out) in scores.iter().zip(out.chunks_exact_mut(self.top_k as usize)) {
                    select(self, scores, out);
                }
            }
        });
    }
}

/// Returns the scores of all rows of the cache up to a token: of each head, or summed over the heads.
fn scores(
    run: &Run<'_>,
    op: &TopkIndexer,
    keys: &KvCache,
    block: usize,
    row: usize,
) -> Vec<Vec<f32>> {
    let query = run.value(op.query).row(row);
    let weights = op.weights.map(|weights| run.value(weights).row(row));
    let heads = op.heads as usize;
    let len = query.len() / heads;
    let count = ((run.positions[row] + 1) / block).min(keys.rows());
    let is_summed = op.sum_heads || weights.is_some();
    let groups = if is_summed { 1 } else { heads };
    let block_scores = |block: usize| {
        let (first, count) = (block * BLOCK, BLOCK.min(keys.rows() - block * BLOCK));
        let mut columns = vec![0.0; BLOCK * len];
        keys.read_columns(0, first, count, &mut columns);
        let mut sums = vec![0.0; groups * BLOCK];
        for (head, query) in query.chunks_exact(len).enumerate() {
            let mut head_scores = [0.0; BLOCK];
            for (x, column) in query.iter().zip(columns.chunks_exact(BLOCK)) {
                head_scores.iter_mut().zip(column).for_each(|(sum, key)| *sum += x * key);
            }
            if is_summed {
                let weight = weights.map_or(1.0, |weights| weights[head]);
                let weighted = head_scores.map(|score| weight * score.max(0.0));
                sums.iter_mut().zip(weighted).for_each(|(sum, score)| *sum += score);
            } else {
                sums[head * BLOCK..(head + 1) * BLOCK].copy_from_slice(&head_scores);
            }
        }
        sums
    };
    let blocks: Vec<Vec<f32>> =
        (0..count.div_ceil(BLOCK)).into_par_iter().map(block_scores).collect();
    let group_scores = |group: usize| {
        let scores = blocks.iter().flat_map(|block| &block[group * BLOCK..(group + 1) * BLOCK]);
        scores.copied().take(count).collect()
    };
    (0..groups).map(group_scores).collect()
}

/// Writes the numbers of the best blocks, and -1 for missing ones.
fn select(op: &TopkIndexer, scores: &[f32], out: &mut [f32]) {
    let max = |block: &[f32]| block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut blocks: Vec<f32> = scores.chunks(op.block as usize).map(max).collect();
    let count = blocks.len();
    for block in blocks.iter_mut().skip(count.saturating_sub(op.local_blocks as usize)) {
        *block = f32::INFINITY;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| blocks[*b].total_cmp(&blocks[*a]));
    out.fill(-1.0);
    out.iter_mut().zip(order).for_each(|(out, block)| *out = block as f32);
}
