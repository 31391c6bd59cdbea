//! Which tokens one looks at: those whose keys fit best.

use gguf_graph::{Choose, StateId};
use rayon::prelude::*;

use crate::cache::{BLOCK, Cache};
use crate::run::Run;
use crate::state::{Kept, Sequence};
use crate::value::Value;

pub(super) fn choose(run: &Run<'_>, choose: &Choose, sequences: &mut [Sequence], out: &mut Value) {
    let key = run.value(choose.key);
    for (sequence, rows) in &run.groups {
        push_keys(run, &mut sequences[*sequence], choose.state, key, rows);
    }
    let mut of_row = vec![0; out.rows];
    for (sequence, rows) in &run.groups {
        rows.iter().for_each(|row| of_row[*row] = *sequence);
    }
    out.data.par_chunks_exact_mut(out.width).enumerate().for_each(|(row, out)| {
        let kept = &sequences[of_row[row]].kept[choose.state.0 as usize];
        if let (Kept::Cache { keys, .. } | Kept::Blocks { keys, .. }, false) =
            (kept, run.watch.ended())
        {
            let scores = scores(run, choose, keys, row);
            let count = choose.count as usize;
            let width = count + usize::from(choose.whole);
            let own = run.positions[row] / choose.block as usize;
            let is_whole = (run.positions[row] + 1).is_multiple_of(choose.block as usize);
            for (scores, out) in scores.iter().zip(out.chunks_exact_mut(width)) {
                let (chosen, more) = out.split_at_mut(count);
                best(choose, scores, chosen);
                more.fill(if is_whole { -1.0 } else { own as f32 });
            }
        }
    });
}

/// Adds keys to a state that has no values: of whole blocks those of their last positions.
fn push_keys(
    run: &Run<'_>,
    sequence: &mut Sequence,
    state: StateId,
    key: &Value,
    rows: &[usize],
) {
    match &mut sequence.kept[state.0 as usize] {
        Kept::Cache { keys, .. } => rows.iter().for_each(|row| keys.push(key.row(*row))),
        Kept::Blocks { keys, block } => {
            let is_last = |row: &&usize| (run.positions[**row] + 1).is_multiple_of(*block);
            rows.iter().filter(is_last).for_each(|row| keys.push(key.row(*row)));
        }
        _ => {}
    }
}

/// The scores of all keys up to the position of a token: of each head, or of all together.
fn scores(run: &Run<'_>, choose: &Choose, keys: &Cache, row: usize) -> Vec<Vec<f32>> {
    let query = run.value(choose.query).row(row);
    let weights = choose.weights.map(|weights| run.value(weights).row(row));
    let heads = choose.heads as usize;
    let len = query.len() / heads;
    let positions = if choose.whole { choose.block as usize } else { 1 };
    let seen = ((run.positions[row] + 1) / positions).min(keys.rows());
    let together = choose.together || weights.is_some();
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
fn best(choose: &Choose, scores: &[f32], out: &mut [f32]) {
    let best = |block: &[f32]| block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let keys = if choose.whole { 1 } else { choose.block as usize };
    let mut blocks: Vec<f32> = scores.chunks(keys).map(best).collect();
    let count = blocks.len();
    for block in blocks.iter_mut().skip(count.saturating_sub(choose.local as usize)) {
        *block = f32::INFINITY;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| blocks[*b].total_cmp(&blocks[*a]));
    out.fill(-1.0);
    out.iter_mut().zip(order).for_each(|(out, block)| *out = block as f32);
}
