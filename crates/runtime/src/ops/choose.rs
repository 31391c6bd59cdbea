//! Which tokens one looks at: those whose keys fit best.

use gguf_graph::TopkIndexer;
use rayon::prelude::*;

use super::attention::push;
use crate::cache::{BLOCK, Cache};
use crate::run::Run;
use crate::state::{Kept, Sequence};
use crate::value::Value;

pub(super) fn choose(
    run: &Run<'_>,
    choose: &TopkIndexer,
    sequences: &mut [Sequence],
    out: &mut Value,
) {
    let key = run.value(choose.key);
    for (sequence, rows) in &run.groups {
        push(run, &mut sequences[*sequence], choose.state, (key, None), rows);
    }
    let mut of_row = vec![0; out.rows];
    for (sequence, rows) in &run.groups {
        rows.iter().for_each(|row| of_row[*row] = *sequence);
    }
    out.data.par_chunks_exact_mut(out.width).enumerate().for_each(|(row, out)| {
        if let Kept::Cache { keys, block, .. } =
            &sequences[of_row[row]].kept[choose.state.0 as usize]
            && !run.watch.ended()
        {
            let scores = scores(run, choose, keys, *block, row);
            let count = choose.top_k as usize;
            for (scores, out) in scores.iter().zip(out.chunks_exact_mut(count)) {
                best(choose, scores, out);
            }
        }
    });
}

/// The scores of all positions up to that of a token, or of all blocks of so many tokens: of each head, or of
/// all together.
fn scores(
    run: &Run<'_>,
    choose: &TopkIndexer,
    keys: &Cache,
    block: usize,
    row: usize,
) -> Vec<Vec<f32>> {
    let query = run.value(choose.query).row(row);
    let weights = choose.weights.map(|weights| run.value(weights).row(row));
    let heads = choose.heads as usize;
    let len = query.len() / heads;
    let seen = ((run.positions[row] + 1) / block).min(keys.rows());
    let together = choose.sum_heads || weights.is_some();
    let groups = if together { 1 } else { heads };
    let of_block = |block: usize| {
        let (first, count) = (block * BLOCK, BLOCK.min(keys.rows() - block * BLOCK));
        let mut columns = vec![0.0; BLOCK * len];
        keys.read_columns(0, first, count, &mut columns);
        let mut sums = vec![0.0; groups * BLOCK];
        for (head, query) in query.chunks_exact(len).enumerate() {
            let mut of_head = [0.0; BLOCK];
            for (x, column) in query.iter().zip(columns.chunks_exact(BLOCK)) {
                of_head.iter_mut().zip(column).for_each(|(sum, key)| *sum += x * key);
            }
            if together {
                let weight = weights.map_or(1.0, |weights| weights[head]);
                let weighed = of_head.map(|score| weight * score.max(0.0));
                sums.iter_mut().zip(weighed).for_each(|(sum, score)| *sum += score);
            } else {
                sums[head * BLOCK..(head + 1) * BLOCK].copy_from_slice(&of_head);
            }
        }
        sums
    };
    let blocks: Vec<Vec<f32>> = (0..seen.div_ceil(BLOCK)).into_par_iter().map(of_block).collect();
    let of_group = |group: usize| {
        let parts = blocks.iter().flat_map(|block| &block[group * BLOCK..(group + 1) * BLOCK]);
        parts.copied().take(seen).collect()
    };
    (0..groups).map(of_group).collect()
}

/// The numbers of the best blocks; -1 for those that there are too few of.
fn best(choose: &TopkIndexer, scores: &[f32], out: &mut [f32]) {
    let best = |block: &[f32]| block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut blocks: Vec<f32> = scores.chunks(choose.block as usize).map(best).collect();
    let count = blocks.len();
    for block in blocks.iter_mut().skip(count.saturating_sub(choose.local_blocks as usize)) {
        *block = f32::INFINITY;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| blocks[*b].total_cmp(&blocks[*a]));
    out.fill(-1.0);
    out.iter_mut().zip(order).for_each(|(out, block)| *out = block as f32);
}
