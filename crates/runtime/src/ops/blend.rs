//! Blocks of tokens that become one row.

use gguf_graph::Blend;

use super::recurrent::kept;
use crate::run::Run;
use crate::state::Sequence;
use crate::value::Value;

/// The state has of the first tokens of a block the rows, each with its scores behind it.
pub(super) fn blend(run: &Run<'_>, blend: &Blend, sequences: &mut [Sequence], out: &mut Value) {
    let (x, scores) = (run.value(blend.x), run.value(blend.scores));
    let added = run.executor.weights.floats(blend.weight);
    let width = x.width;
    let len = added.len() / width;
    for (sequence, rows) in &run.groups {
        let block = kept(&mut sequences[*sequence], blend.state);
        for row in rows {
            let place = run.positions[*row] % len;
            if place + 1 < len {
                let kept = &mut block[place * 2 * width..(place + 1) * 2 * width];
                kept[..width].copy_from_slice(x.row(*row));
                kept[width..].copy_from_slice(scores.row(*row));
                continue;
            }
            let last = (x.row(*row), scores.row(*row));
            let first = block.chunks_exact(2 * width).map(|kept| kept.split_at(width));
            let all: Vec<_> = first.chain([last]).zip(added.chunks_exact(width)).collect();
            let out = &mut out.data[row * width..(row + 1) * width];
            for (column, out) in out.iter_mut().enumerate() {
                *out = weighed(
                    all.iter()
                        .map(|((x, scores), added)| (x[column], scores[column] + added[column])),
                );
            }
        }
    }
}

/// The mean of numbers by the softmax of their scores.
fn weighed(all: impl Iterator<Item = (f32, f32)> + Clone) -> f32 {
    let greatest = all.clone().map(|(_, score)| score).fold(f32::NEG_INFINITY, f32::max);
    let (mut sum, mut shares) = (0.0, 0.0);
    for (x, score) in all {
        let share = (score - greatest).exp();
        sum += share * x;
        shares += share;
    }
    sum / shares
}
